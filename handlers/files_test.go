package handlers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"mime/multipart"
	"net/url"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/handlers/handlerstest"
)

// published runs a turn that publishes files and returns its worker's address.
func (s *site) published(t testing.TB, files ...string) string {
	t.Helper()
	var lines []string
	for i := 0; i+1 < len(files); i += 2 {
		lines = append(lines, publishing(files[i], files[i+1]))
	}
	r := s.run(t, fields{"input": scripted(lines...)})
	if r.at("error") != nil || r.size("files") == 0 {
		t.Fatalf("nothing was published: %s", r.body)
	}
	return "/api/workers/" + r.text("id")
}

func tagOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

// TestGetFile reads a file whole, in ranges and with conditions.
func TestGetFile(t *testing.T) {
	_, s := onServer(t)
	const content = "0123456789"
	path := s.published(t, "a.txt", content) + "/files/a.txt"
	tag := tagOf(content)
	for name, tt := range map[string]struct {
		header, body, contentRange string
		status                     int
	}{
		"whole":                {"", content, "", 200},
		"first bytes":          {"Range: bytes=0-3", "0123", "bytes 0-3/10", 206},
		"from the middle":      {"Range: bytes=7-", "789", "bytes 7-9/10", 206},
		"last bytes":           {"Range: bytes=-2", "89", "bytes 8-9/10", 206},
		"more than there is":   {"Range: bytes=8-99", "89", "bytes 8-9/10", 206},
		"last, more":           {"Range: bytes=-99", content, "bytes 0-9/10", 206},
		"one byte":             {"Range: bytes=9-9", "9", "bytes 9-9/10", 206},
		"outside":              {"Range: bytes=10-", "", "bytes */10", 416},
		"backwards":            {"Range: bytes=5-4", "", "bytes */10", 416},
		"no unit":              {"Range: 0-3", "", "bytes */10", 416},
		"nonsense":             {"Range: bytes=a-b", "", "bytes */10", 416},
		"same tag":             {"If-None-Match: " + tag, "", "", 304},
		"weak tag":             {"If-None-Match: W/" + tag, "", "", 304},
		"any tag":              {"If-None-Match: *", "", "", 304},
		"one of the tags":      {`If-None-Match: "x", ` + tag, "", "", 304},
		"other tag":            {`If-None-Match: "x"`, content, "", 200},
		"broken tag":           {`If-None-Match: x`, content, "", 200},
		"range of this tag":    {"Range: bytes=0-3\nIf-Range: " + tag, "0123", "bytes 0-3/10", 206},
		"range of another tag": {"Range: bytes=0-3\nIf-Range: \"x\"", content, "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			got := s.do(t, "GET", path, "", strings.Split(tt.header, "\n")...)
			is.Equal(got.status, tt.status)
			is.Equal(got.header.Get("Content-Range"), tt.contentRange)
			if tt.status == 416 {
				is.Equal(got.refused(), "416 range_not_satisfiable")
				return
			}
			is.Equal(string(got.body), tt.body)
			is.Equal(got.header.Get("ETag"), tag)
			is.Equal(got.header.Get("Cache-Control"), "private, no-cache")
			head := s.do(t, "HEAD", path, "", strings.Split(tt.header, "\n")...)
			is.Equal(head.header.Get("ETag"), tag)
			if tt.status == 200 {
				is.Equal(head.header.Get("Content-Length"), "10")
				is.Equal(head.header.Get("Accept-Ranges"), "bytes")
			}
		})
	}
}

// TestGetFileParts requests two ranges at once.
func TestGetFileParts(t *testing.T) {
	is, s := onServer(t)
	path := s.published(t, "a.txt", "0123456789") + "/files/a.txt"
	resp, err := handlerstest.Client.Do(s.request(t, "GET", path, "", "Range: bytes=0-1,8-"))
	is.NoErr(err)
	defer resp.Body.Close()
	is.Equal(resp.StatusCode, 206)
	mediaType, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	is.NoErr(err)
	is.Equal(mediaType, "multipart/byteranges")
	parts := multipart.NewReader(resp.Body, params["boundary"])
	for _, want := range []string{"bytes 0-1/10", "bytes 8-9/10"} {
		p, err := parts.NextPart()
		is.NoErr(err)
		is.Equal(p.Header.Get("Content-Range"), want)
		is.Equal(p.Header.Get("Content-Type"), "text/plain; charset=utf-8")
	}
}

// TestFileTypes checks that each file has its media type and cannot act as a page of the dashboard.
func TestFileTypes(t *testing.T) {
	_, s := onServer(t)
	html := "<!doctype html><script>fetch('/api/me')</script>"
	worker := s.published(t, "page.html", html, "data.csv", "a,b\n", "data.json", "{}", "image.svg", `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"no-extension", "text", "script.js", "alert(1)", "page.xhtml", "<html xmlns='http://www.w3.org/1999/xhtml'/>", "empty.txt", "")
	for name, want := range map[string]string{
		"page.html": "text/html; charset=utf-8", "data.csv": "text/csv; charset=utf-8", "data.json": "application/json", "image.svg": "image/svg+xml",
		"no-extension": "text/plain; charset=utf-8", "script.js": "text/javascript; charset=utf-8", "page.xhtml": "application/xhtml+xml", "empty.txt": "text/plain; charset=utf-8",
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			header := s.must(t, "GET", worker+"/files/"+name, "").header
			is.Equal(header.Get("Content-Type"), want)
			is.Equal(header.Get("X-Content-Type-Options"), "nosniff")
			policy := header.Get("Content-Security-Policy")
			is.True(strings.HasPrefix(policy, "sandbox;") && strings.Contains(policy, "default-src 'none'")) // no script, no cookies, no requests
			is.True(!strings.Contains(policy, "allow-"))                                                     // the policy allows the file something
		})
	}
}

// TestFilesAreNoCode asks for a file as browsers do for each use in a page.
func TestFilesAreNoCode(t *testing.T) {
	_, s := onServer(t)
	path := s.published(t, "script.js", "alert(1)") + "/files/script.js"
	for status, uses := range map[int]string{
		403: "script style worker sharedworker serviceworker audioworklet paintworklet xslt manifest",
		200: "document empty image iframe audio video object embed",
	} {
		for use := range strings.FieldsSeq(uses) {
			is.New(t).Equal(s.do(t, "GET", path, "", "Sec-Fetch-Dest: "+use).status, status)
		}
	}
}

// TestFileVersions publishes a path twice. Each version keeps its URL.
func TestFileVersions(t *testing.T) {
	is, s := onServer(t)
	id := s.newWorker(t, fields{})
	address := func(content string) string {
		r := s.run(t, fields{"workerId": id, "taskId": "t", "input": scripted(publishing("dir/a.txt", content))})
		is.Equal(r.size("files"), 1) // the newest version of each path
		is.Equal(r.at("files.0.size"), float64(len(content)))
		return strings.TrimPrefix(r.text("files.0.url"), s.url)
	}
	first, second := address("one"), address("second")
	is.True(first != second) // both versions have the same address
	bare, _, _ := strings.Cut(first, "?")
	is.Equal(string(s.must(t, "GET", first, "").body), "one")
	is.Equal(string(s.must(t, "GET", second, "").body), "second")
	is.Equal(string(s.must(t, "GET", bare, "").body), "second")
	is.Equal(string(s.must(t, "GET", bare+"?v=", "").body), "second")
	is.True(strings.Contains(s.must(t, "GET", first, "").header.Get("Cache-Control"), "immutable"))
	token, err := s.store.People.CreateSession(t.Context(), s.owner.Caller, "Browser/1")
	is.NoErr(err)
	is.Equal(s.as("").must(t, "GET", first, "", "Cookie: "+handlers.SessionCookie+"="+token).header.Get("Cache-Control"), "private, no-cache") // a browser may have several users
	for _, v := range []string{"000000000000", "x", strings.ToUpper(first[len(first)-12:]), first[len(first)-12:] + "0", "%25", "'"} {
		if v != first[len(first)-12:] { // digits have no upper case
			is.Equal(s.do(t, "GET", bare+"?v="+v, "").refused(), "404 not_found")
		}
	}
	turns := s.must(t, "GET", "/api/tasks/t/turns", "")
	is.Equal("/api"+strings.SplitN(turns.text("items.0.files.0.url"), "/api", 2)[1], first) // the files of that turn
	is.Equal("/api"+strings.SplitN(turns.text("items.1.files.0.url"), "/api", 2)[1], second)
	again := address("one") // the same content has the same URL
	is.Equal(again, first)
	is.Equal(string(s.must(t, "GET", bare, "").body), "one")
}

// TestFileNames gets files with unusual names from their URLs, and with every slash escaped.
func TestFileNames(t *testing.T) {
	_, s := onServer(t)
	for _, name := range []string{"a b.txt", "a+b.txt", "a%2Fb.txt", "a%.txt", "a#b.txt", "a&b=c.txt", "ünï 🜁/x.txt", "a;b.txt", "deep/er/and/deeper.txt", "a:b.txt", "'\"`.txt", "v=1.txt"} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			r := s.run(t, fields{"input": scripted(publishing(name, "content of "+name))})
			if r.size("files") == 0 {
				t.Fatalf("not published: %s", r.body)
			}
			address := strings.TrimPrefix(r.text("files.0.url"), s.url)
			is.Equal(string(s.must(t, "GET", address, "").body), "content of "+name)
			escaped := "/api/workers/" + r.text("id") + "/files/" + url.PathEscape(name) // slashes too
			is.Equal(string(s.must(t, "GET", escaped, "").body), "content of "+name)
			is.Equal(r.text("files.0.filename"), name[strings.LastIndex(name, "/")+1:])
		})
	}
}

// TestNoEscape requests paths outside a worker's published files.
func TestNoEscape(t *testing.T) {
	is, s := onServer(t)
	other := s.published(t, "secret.txt", "theirs")
	r := s.run(t, fields{"input": scripted(publishing("dir/a.txt", "x"), calling("write_file", "path", "private.txt", "content", "unpublished"))})
	files := "/api/workers/" + r.text("id") + "/files/"
	otherID := strings.TrimPrefix(other, "/api/workers/")
	for _, path := range []string{"", "/", ".", "..", "../", "dir", "dir/", "dir/../dir/a.txt", "./dir/a.txt", "dir//a.txt", "/dir/a.txt", "dir/a.txt/", "dir/a.txt/..", "private.txt",
		"../" + otherID + "/secret.txt", "../../" + otherID + "/files/secret.txt", "%2e%2e/" + otherID + "/files/secret.txt", "..%2f..%2f" + otherID + "%2ffiles%2fsecret.txt",
		"%252e%252e%252fsecret.txt", "..%5c..%5cjourneyman.db", "..%00/x", "%00", "dir/a.txt%00", "..;/x", "..%c0%af..%c0%afetc/passwd", "%ff", "\u2025/x",
		"../../../journeyman.db", "%2fetc%2fpasswd", "/etc/passwd", "file:///etc/passwd", "DIR/A.TXT", strings.Repeat("a/", 2000), strings.Repeat("%2e%2e%2f", 500)} {
		t.Run(path[:min(len(path), 30)], func(t *testing.T) {
			is := is.New(t)
			is.Equal(s.do(t, "GET", files+path, "").refused(), "404 not_found")
			is.True(!strings.Contains(s.do(t, "GET", files+path, "").text("error"), "id")) // the address names a path
		})
	}
	is.Equal(s.do(t, "GET", "/api/workers/none/files/a", "").refused(), "404 not_found")
	is.Equal(s.do(t, "GET", "/api/workers/"+r.text("id")+"/files", "").refused(), "404 not_found")
}
