package handlers_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/store/storetest"
)

// A part is a part of a multipart body. It has the given disposition; without one, it is a file if
// it has a file name, and otherwise a field.
type part struct{ name, file, content, disposition string }

// form returns a multipart body and its content type.
func form(t testing.TB, parts ...part) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, p := range parts {
		disposition := p.disposition
		if disposition == "" {
			disposition = fmt.Sprintf(`form-data; name=%q`, p.name)
			if p.file != "" {
				disposition += fmt.Sprintf(`; filename=%q`, p.file)
			}
		}
		pw, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		if err == nil {
			_, err = pw.Write([]byte(p.content))
		}
		is.New(t).NoErr(err)
	}
	is.New(t).NoErr(w.Close())
	return b.String(), "Content-Type: " + w.FormDataContentType()
}

// upload sends a form that creates a task.
func (s *site) upload(t testing.TB, parts []part, headers ...string) response {
	t.Helper()
	return s.beginUpload(t, parts, headers...)()
}

// beginUpload sends the form without waiting for the answer.
func (s *site) beginUpload(t testing.TB, parts []part, headers ...string) func() response {
	t.Helper()
	body, contentType := form(t, parts...)
	return s.begin(t, "POST", "/api/tasks", body, append(headers, contentType)...)
}

// attachments returns the names and URLs of a task's attachments as its page shows them.
func (s *site) attachments(t testing.TB, r response) (names, urls []string) {
	for i := range r.size("messages.0.parts") {
		at := fmt.Sprintf("messages.0.parts.%d.", i)
		if r.text(at+"type") == "file" {
			names = append(names, r.text(at+"filename"))
			urls = append(urls, strings.TrimPrefix(r.text(at+"url"), s.url))
		}
	}
	return names, urls
}

// TestUpload sends files of all kinds, which the worker reads.
func TestUpload(t *testing.T) {
	_, s := onServer(t)
	reads := func(path string) string { return scripted(calling("read_file", "path", path), "say {{last}}") }
	for name, tt := range map[string]struct {
		parts []part
		names string // of the attachments
		says  string
	}{
		"no files":        {[]part{{name: "input", content: "hello"}}, "", ""},
		"a file":          {[]part{{name: "input", content: reads("a.txt")}, {name: "files", file: "a.txt", content: "alpha"}}, "a.txt", "alpha"},
		"file first":      {[]part{{name: "x", file: "a.txt", content: "alpha"}, {name: "input", content: reads("a.txt")}}, "a.txt", "alpha"},
		"no field name":   {[]part{{name: "input", content: reads("a.txt")}, {disposition: `form-data; filename="a.txt"`, content: "alpha"}}, "a.txt", "alpha"},
		"empty file":      {[]part{{name: "input", content: "x"}, {name: "f", file: "e.txt"}}, "e.txt", ""},
		"same name twice": {[]part{{name: "input", content: reads("a (2).txt")}, {name: "f", file: "a.txt", content: "one"}, {name: "f", file: "a.txt", content: "two"}}, "a.txt,a (2).txt", "two"},
		"named input":     {[]part{{name: "input", file: "input", content: "file"}, {name: "input", content: reads("input")}}, "input", "file"},
		"path":            {[]part{{name: "input", content: "x"}, {name: "f", file: "../../etc/passwd", content: "x"}}, "passwd", ""},
		"windows path":    {[]part{{name: "input", content: "x"}, {disposition: `form-data; name=f; filename="C:\\dir\\a.txt"`, content: "x"}}, "a.txt", ""},
		"unicode":         {[]part{{name: "input", content: reads("naïve 🜁.txt")}, {name: "f", file: "naïve 🜁.txt", content: "x"}}, "naïve 🜁.txt", "x"},
		"encoded name":    {[]part{{name: "input", content: "x"}, {disposition: `form-data; name=f; filename*=UTF-8''na%C3%AFve.txt`, content: "x"}}, "naïve.txt", ""},
		"odd characters":  {[]part{{name: "input", content: "x"}, {name: "f", file: "a#b?c%2Fd&e;f.txt", content: "x"}}, "a#b_c%2Fd&e;f.txt", ""},
		"no file chosen":  {[]part{{name: "input", content: "x"}, {disposition: `form-data; name="files"; filename=""`}}, "", ""},
		"empty fields":    {[]part{{name: "input", content: "x"}, {name: "taskId"}, {name: "workerId"}, {name: "budget"}, {name: "stream"}}, "", ""},
		"field twice":     {[]part{{name: "input", content: "first"}, {name: "input", content: scripted("say second")}}, "", "second"},
		"unnamed part":    {[]part{{disposition: "form-data", content: "?"}, {name: "input", content: "x"}}, "", ""},
		"no disposition":  {[]part{{disposition: " ", content: "?"}, {name: "input", content: "x"}}, "", ""},
		"quoted bytes":    {[]part{{name: "input", content: scripted("say a=3Db")}}, "", "a=3Db"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.upload(t, tt.parts)
			is.Equal(r.status, 200)
			is.Equal(r.at("error"), nil)
			names, urls := s.attachments(t, r)
			is.Equal(strings.Join(names, ","), tt.names)
			is.True(strings.Contains(r.text("output_text"), tt.says)) // the files existed when the turn ran
			for _, url := range urls {
				is.Equal(s.do(t, "GET", url, "").status, 200) // the files can be downloaded
			}
			is.Equal(r.size("files"), 0) // no file was published
		})
	}
}

// TestHostileNames checks that every attachment stays in the workspace.
func TestHostileNames(t *testing.T) {
	_, s := onServer(t)
	for _, file := range []string{"..", ".", "/", "/etc/passwd", "a/../../b", "...", ".hidden", "~", "-rf", "CON", "a\x00b", "a\nb", "a\rb", strings.Repeat("x", 3000),
		strings.Repeat("é", 300) + ".txt", " ", "a ", "\u202egpj.exe", "a\\..\\b", "\xff\xfe", "%2e%2e%2f", "a:b", "*?<>|"} {
		t.Run(fmt.Sprintf("%.10q", file), func(t *testing.T) {
			is := is.New(t)
			disposition := `form-data; name=f; filename="` + strings.NewReplacer(`\`, `\\`, "\n", "%0A", "\r", "%0D", "\x00", "%00").Replace(file) + `"`
			r := s.upload(t, []part{{name: "input", content: "x"}, {disposition: disposition, content: "inside"}})
			is.Equal(r.status, 200)
			names, urls := s.attachments(t, r)
			if len(names) == 0 {
				return // without a usable name, the part is a field
			}
			is.True(!strings.ContainsAny(names[0], "/\\\x00\n\r") && names[0] != ".." && names[0] != ".")
			root := filepath.Join(s.store.Dir(), "workspaces", r.text("id"))
			b, err := os.ReadFile(filepath.Join(root, names[0]))
			is.NoErr(err)
			is.Equal(string(b), "inside")
			is.Equal(string(s.must(t, "GET", urls[0], "").body), "inside")
		})
	}
}

// TestUploadLimits reaches each limit, and exceeds it by one.
func TestUploadLimits(t *testing.T) {
	t.Parallel()
	const file, request = 1000, 3000
	limits := func(set *settings) {
		set.API.Uploads = handlers.UploadLimits{FileSize: file, Files: 3, RequestSize: request}
	}
	input := part{name: "input", content: "x"}
	sized := func(n int) part { return part{name: "f", file: "a", content: strings.Repeat("a", n)} }
	many := func(n int, p part) []part {
		parts := []part{input}
		for range n {
			parts = append(parts, p)
		}
		return parts
	}
	frame, _ := form(t, many(3, sized(0))...)
	s := newServer(t, limits)
	for name, tt := range map[string]struct {
		parts []part
		want  string
	}{
		"a file's size":       {many(1, sized(file)), "200 "},
		"a byte more":         {many(1, sized(file+1)), "413 too_large"},
		"files":               {many(3, sized(1)), "200 "},
		"a file more":         {many(4, sized(1)), "413 too_large"},
		"request's size":      {append(many(2, sized(file)), sized(request-len(frame)-2*file)), "200 "},
		"a byte more of it":   {append(many(2, sized(file)), sized(request-len(frame)-2*file+1)), "413 too_large"},
		"a field's size":      {[]part{{name: "input", content: strings.Repeat("a", request)}}, "413 too_large"},
		"a file, no input":    {[]part{sized(1)}, "400 invalid_request input"},
		"a hundred fields":    {many(110, part{disposition: "form-data; name=i", content: "a"}), "413 too_large"},
		"headers of a part":   {[]part{{disposition: "form-data; name=" + strings.Repeat("a", 2000), content: "x"}, input}, "200 "},
		"wrong values":        {[]part{{name: "input", content: " "}, {name: "budget", content: "huge"}, {name: "stream", content: "1"}, {name: "taskId", content: "a b"}}, "400 invalid_request input budget taskId stream"},
		"no UTF-8":            {[]part{{name: "input", content: "\xff"}}, "400 invalid_request"},
		"unknown worker":      {append(many(1, sized(1)), part{name: "workerId", content: "wrk_none"}), "404 not_found"},
		"unknown field's NUL": {append(many(0, input), part{name: "x", content: "\x00"}), "200 "},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(s.upload(t, tt.parts).refused(), tt.want)
		})
	}
}

// TestDefaultUploadLimits sends as much as the API description allows.
func TestDefaultUploadLimits(t *testing.T) {
	storetest.Slow(t)
	is, s := onServer(t)
	parts := []part{{name: "input", content: "x"}}
	for i := range 20 {
		parts = append(parts, part{name: "f", file: fmt.Sprintf("%d.txt", i), content: "x"})
	}
	is.Equal(s.upload(t, parts).status, 200)
	is.Equal(s.upload(t, append(parts, parts[1])).refused(), "413 too_large")
	half := strings.Repeat("a", 1<<19)
	is.Equal(s.upload(t, []part{{name: "x", content: half}, {name: "y", content: half[1:]}, parts[0]}).status, 200)
	is.Equal(s.upload(t, []part{{name: "x", content: half}, {name: "y", content: half}, parts[0]}).refused(), "413 too_large") // a megabyte of fields together
	large := strings.Repeat("a", 25<<20)
	is.Equal(s.upload(t, []part{parts[0], {name: "f", file: "a", content: large}}).status, 200)
	is.Equal(s.upload(t, []part{parts[0], {name: "f", file: "a", content: large + "a"}}).refused(), "413 too_large")
}

// TestBrokenForms truncates a body at every byte, and breaks it in other ways.
func TestBrokenForms(t *testing.T) {
	is, s := onServer(t, idle)
	const whole = "--b\r\nContent-Disposition: form-data; name=\"input\"\r\n\r\nhello\r\n--b\r\nContent-Disposition: form-data; name=f; filename=a\r\n\r\nbytes\r\n--b--"
	const contentType = "Content-Type: multipart/form-data; boundary=b"
	for n := range len(whole) {
		is.Equal(s.do(t, "POST", "/api/tasks", whole[:n], contentType).refused(), "400 invalid_request") // cut off after n bytes
	}
	for name, tt := range map[string]struct{ body, contentType, want string }{
		"whole":          {whole, contentType, "202 "},
		"epilogue":       {whole + "\r\nlast words", contentType, "202 "},
		"preamble":       {"first words\r\n" + whole, contentType, "202 "},
		"empty":          {"", contentType, "400 invalid_request"},
		"no boundary":    {whole, "Content-Type: multipart/form-data", "400 invalid_request"},
		"other boundary": {whole, "Content-Type: multipart/form-data; boundary=c", "400 invalid_request"},
		"long boundary":  {whole, "Content-Type: multipart/form-data; boundary=" + strings.Repeat("b", 71), "400 invalid_request"},
		"JSON":           {`{"input":"x"}`, contentType, "400 invalid_request"},
		"part's headers": {"--b\r\n" + strings.Repeat("X: y\r\n", 20000) + "\r\n\r\n--b--", contentType, "413 too_large"},
		"broken header":  {"--b\r\nno colon\r\n\r\nx\r\n--b--", contentType, "400 invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(s.do(t, "POST", "/api/tasks", tt.body, tt.contentType, "Prefer: respond-async").refused(), tt.want)
		})
	}
}

// TestUploadOnce repeats uploads. The same files are the same request, with any boundary.
func TestUploadOnce(t *testing.T) {
	_, s := onServer(t)
	parts := []part{{name: "input", content: "hello"}, {name: "f", file: "a.txt", content: "alpha"}}
	for name, headers := range map[string][2]string{
		"key":   {"Idempotency-Key: k", "Idempotency-Key: k"},
		"retry": {"X-Stainless-Retry-Count: 0", "X-Stainless-Retry-Count: 1"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			first := s.upload(t, parts, headers[0])
			is.Equal(first.status, 200)
			again := s.upload(t, parts, headers[1])
			is.Equal(again.text("metadata.turnId"), first.text("metadata.turnId"))
			is.Equal(again.header.Get("Idempotency-Replayed"), "true")
			workspace, err := os.ReadDir(filepath.Join(s.store.Dir(), "workspaces", first.text("id")))
			is.NoErr(err)
			is.Equal(len(workspace), 1) // the file is attached once
			for _, other := range [][]part{
				{parts[0], {name: "f", file: "a.txt", content: "beta"}}, {parts[0], {name: "f", file: "b.txt", content: "alpha"}}, parts[:1],
			} {
				r := s.upload(t, other, headers[1])
				if name == "key" {
					is.Equal(r.refused(), "422 idempotency_mismatch")
				} else {
					is.True(r.text("metadata.turnId") != first.text("metadata.turnId")) // another upload got the same turn
				}
			}
		})
	}
}

// TestUploadToTask attaches files to a worker, to a task and to requests that are refused.
func TestUploadToTask(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	file := part{name: "f", file: "a.txt", content: "alpha"}
	input, task := part{name: "input", content: "hello"}, part{name: "taskId", content: "t"}
	r := s.upload(t, []part{input, task, file, {name: "workerId", content: id}, {name: "budget", content: "low"}})
	is.Equal(r.text("id"), id)
	is.Equal(r.text("metadata.budget"), "low")
	is.Equal(s.upload(t, []part{input, task, file}).text("id"), id)
	workspace := filepath.Join(s.store.Dir(), "workspaces", id)
	entries := func() string {
		list, err := os.ReadDir(workspace)
		is.NoErr(err)
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		return strings.Join(names, ",")
	}
	is.Equal(entries(), "a (2).txt,a.txt")
	is.Equal(s.upload(t, []part{input, task, file, {name: "workerId", content: s.newWorker(t, fields{})}}).refused(), "400 invalid_request taskId")
	s.must(t, "DELETE", "/api/tasks/t", "")
	refused := s.upload(t, []part{input, task, file})
	is.Equal(refused.refused(), "409 conflict")
	is.Equal(refused.header.Get("x-should-retry"), "false")
	is.Equal(entries(), "a (2).txt,a.txt") // no file of a refused request is left
	st := s.upload(t, []part{input, file, {name: "stream", content: "true"}})
	is.True(strings.HasSuffix(strings.TrimSpace(string(st.body)), "data: [DONE]"))
}

// TestUploadsOfAllRuns attaches files to each call that runs an instruction.
func TestUploadsOfAllRuns(t *testing.T) {
	is, s := onServer(t)
	worker := s.newWorker(t, fields{})
	input := scripted(calling("read_file", "path", "a.txt"), "say {{last}}")
	for _, path := range []string{"/api/workers", "/api/workers/" + worker, "/api/tasks"} {
		t.Run(path, func(t *testing.T) {
			is := is.New(t)
			body, contentType := form(t, part{name: "input", content: input}, part{name: "budget", content: "low"}, part{name: "f", file: "a.txt", content: "alpha"})
			headers := []string{contentType, "Prefer: wait=30", "Idempotency-Key: " + path}
			r := s.must(t, "POST", path, body, headers...)
			is.True(strings.Contains(r.text("output_text"), "alpha"))
			is.Equal(r.text("metadata.budget"), "low")
			names, _ := s.attachments(t, r)
			is.Equal(names, []string{"a.txt"})
			again := s.must(t, "POST", path, body, headers...)
			is.Equal(again.text("metadata.turnId"), r.text("metadata.turnId")) // the same request runs once
			other, contentType := form(t, part{name: "input", content: input}, part{name: "budget", content: "low"}, part{name: "f", file: "a.txt", content: "beta"})
			is.Equal(s.do(t, "POST", path, other, contentType, "Idempotency-Key: "+path).status, 422) // its file differs
		})
	}
	body, contentType := form(t, part{name: "input", content: scripted(`json {"n":1}`)}, part{name: "outputSchema", content: `{"type":"object","required":["n"]}`},
		part{name: "approvalTools", content: `["shell"]`}, part{name: "title", content: "Formed"}, part{name: "f", file: "a.txt", content: "x"})
	r := s.must(t, "POST", "/api/workers", body, contentType, "Prefer: wait=30")
	is.Equal(r.at("structured_output.n"), 1.0) // fields that are not text are JSON
	made := s.must(t, "GET", "/api/workers/"+r.text("id")+"/template", "")
	is.Equal([]any{made.at("title"), made.at("approvalTools.0")}, []any{"Formed", "shell"})
	body, contentType = form(t, part{name: "title", content: "T"}, part{name: "f", file: "a.txt", content: "x"})
	is.Equal(s.do(t, "POST", "/api/workers", body, contentType).refused(), "400 invalid_request files") // without a run, nothing could read the files
	body, contentType = form(t, part{name: "title", content: "T"})
	is.Equal(s.must(t, "POST", "/api/workers", body, contentType).text("title"), "T")
}
