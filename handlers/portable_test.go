package handlers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/handlers"
	"journeyman/runner/sandbox"
	"journeyman/store/db"
	"journeyman/store/ordertest"
)

// TestExportAndImport exports and imports a worker. The new worker and its file equal the first.
func TestExportAndImport(t *testing.T) {
	_, s := onServer(t, idle)
	for name, body := range map[string]string{
		"nothing": `{"title":"T"}`,
		"everything": `{"title":"Ünïcode: \"quoted\" # no comment","summary":"- a list? no","visibility":"private","workspace":"task","keepTaskDays":7,"model":"offline","effort":"max","temperature":0,
			"instructions":"Write.\n\n- Be brief.\n  # not a comment\n\nUse 'quotes'.\n","approvalTools":["shell"],"mcpTools":["crm.find"],
			"tools":["read_file",{"tool":"web_fetch","hosts":["example.com","*.example.org"]}],"strangerTools":[],
			"outputSchema":{"type":"object","properties":{"z":{"type":"number","maximum":1e300},"a":{"enum":["yes","no",null,true,"1"]}},"required":["z"]}}`,
		"hostile text": encode(fields{"title": "x", "instructions": "a\r\nb\t\n  trailing  \n\n\u2028\x01 [[[ {{{ &a *b !!c <<: | > %"}),
		"first space":  encode(fields{"title": "y", "instructions": "  indented first\nline"}),
		"blank ends":   encode(fields{"title": "y", "instructions": "\n\nline\nline\n\n"}),
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			made := s.must(t, "POST", "/api/workers", body)
			base := "/api/workers/" + made.text("id")
			for _, when := range []string{`{"type":"cron","cron":"0 9 * * 1-5"}`, `{"type":"interval","intervalSeconds":90}`,
				`{"type":"scheduled","date":"2090-01-31T09:00:00.500Z"}`} {
				s.must(t, "POST", base+"/schedules", `{"input":"What is new?\nSay it.","budget":"low","when":`+when+`}`)
			}
			file := s.must(t, "GET", base+"/export", "")
			is.Equal(file.header.Get("Content-Type"), "application/yaml")
			copied := s.must(t, "POST", "/api/workers/import", string(file.body), "Content-Type: application/yaml")
			is.True(copied.text("id") != made.text("id"))
			for _, field := range []string{"title", "summary", "instructions", "outputSchema", "model", "approvalTools", "mcpTools", "tools", "strangerTools", "effort", "temperature", "workspace", "keepTaskDays", "visibility"} {
				is.Equal(copied.at(field), made.at(field))
			}
			again := s.must(t, "GET", "/api/workers/"+copied.text("id")+"/export", "")
			is.Equal(string(again.body), string(file.body))
			is.Equal(len(s.must(t, "GET", "/api/workers/"+copied.text("id")+"/schedules", "").at("schedules").([]any)), 3)
		})
	}
}

// TestImportOnce repeats an import with a key.
func TestImportOnce(t *testing.T) {
	is, s := onServer(t, idle)
	file := "journeyman: 1\ntitle: Clerk\n"
	first := s.must(t, "POST", "/api/workers/import", file, "Idempotency-Key: k")
	again := s.must(t, "POST", "/api/workers/import", file, "Idempotency-Key: k")
	is.Equal(again.text("id"), first.text("id"))
	is.Equal(s.do(t, "POST", "/api/workers/import", file+"summary: x\n", "Idempotency-Key: k").status, http.StatusUnprocessableEntity)
	is.True(s.must(t, "POST", "/api/workers/import", file).text("id") != first.text("id")) // import never changes a worker
	is.Equal(s.must(t, "POST", "/api/workers/import", `{"journeyman": 1, "title": "JSON is YAML"}`).text("title"), "JSON is YAML")
}

// TestImportRefusals sends files that break a rule. Each refusal names the place and the rule, and
// creates no worker.
func TestImportRefusals(t *testing.T) {
	_, s := onServer(t, idle)
	const head = "journeyman: 1\n"
	bomb := "journeyman: 1\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 8) + "*" + string(c-1) + "]\n"
	}
	for name, tt := range map[string]struct{ file, path, says string }{
		"empty":            {"", "", "one YAML document"},
		"no object":        {"- a\n", "", "must be an object"},
		"no format":        {"title: T\n", "journeyman", "must be 1"},
		"later format":     {"journeyman: 2\n", "journeyman", "newer version"},
		"unknown field":    {head + "titel: T\n", "titel", `did you mean "title"?`},
		"secret":           {head + "secrets: [a]\n", "secrets", "is not a field"},
		"wrong type":       {head + "title: [a]\n", "title", "must be a string"},
		"too long":         {head + "summary: " + strings.Repeat("x", 81), "summary", "at most 80"},
		"unknown tool":     {head + "tools: [read_fiel]\n", "tools", "read_file"},
		"schema":           {head + "outputSchema: {type: strin}\n", "outputSchema", ""},
		"unknown model":    {head + "model: nobody:nothing\n", "model", ""},
		"webhook":          {head + "webhook: ftp://example.com\n", "webhook", ""},
		"schedules":        {head + "schedules: daily\n", "schedules", "must be a list"},
		"schedule":         {head + "schedules:\n  - {when: {type: cron, cron: x}, input: y}\n", "schedules.0.when.cron", ""},
		"schedule's field": {head + "schedules:\n  - {when: {type: cron, cron: '0 9 * * *'}, input: y, zone: x}\n", "schedules.0.zone", "is not a field"},
		"past":             {head + "schedules:\n  - {when: {type: scheduled, date: '2001-01-01T00:00:00Z'}, input: y}\n", "schedules.0.when.date", "future"},
		"many schedules":   {head + "schedules: [" + strings.Repeat("{},", 101) + "]", "schedules", "at most 100"},
		"anchor":           {head + "title: &a T\n", "", "anchors"},
		"alias":            {head + "title: *a\n", "", ""},
		"bomb":             {bomb, "", "anchors"},
		"merge key":        {head + "<<: {title: T}\n", "", "merge keys"},
		"tag":              {head + "title: !!binary aGFsbG8=\n", "", "tags"},
		"key twice":        {head + "title: a\ntitle: b\n", "", "line 3"},
		"two documents":    {head + "---\n" + head, "", "one YAML document"},
		"infinity":         {head + "outputSchema: {maximum: .inf}\n", "", "infinity"},
		"not UTF-8":        {head + "title: \xff\n", "", "UTF-8"},
		"zero byte":        {head + "title: a\x00\n", "", "zero byte"},
		"syntax":           {head + "title: \"a\n", "", "line"},
		"deep flow":        {head + "outputSchema: " + strings.Repeat("[", 100_000), "", "inside each other"},
		"deep and closed":  {head + "title: " + strings.Repeat("[", 40_000) + strings.Repeat("]", 40_000), "", "inside each other"},
		"many keys":        {head + "x: 1\n" + keys(10_001), "", "more than 10000 lines"},
		"lone returns":     {head + "x: 1\r" + strings.ReplaceAll(keys(10_001), "\n", "\r"), "", "carriage return"},
		"many items":       {head + "tools:\n" + strings.Repeat("-\n", 10_001), "", "more than 10000 lines"},
		"deep hyphens":     {head + "tools:\n" + strings.Repeat("- ", 100_000) + "x\n", "", "inside each other"},
		"deep keys":        {head + "tools: " + strings.Repeat("{a: ", 70) + "1" + strings.Repeat("}", 70), "", "inside each other"},
		"many values":      {head + "tools: [" + strings.Repeat("a,", 150_000) + "a]\n", "", "more than 100000 values"},
		"large":            {head + "# " + strings.Repeat("x", 1<<20), "", "at most 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			begun := time.Now()
			r := s.do(t, "POST", "/api/workers/import", tt.file, "Content-Type: application/yaml")
			is.True(r.status == http.StatusBadRequest || name == "large" && r.status == http.StatusRequestEntityTooLarge)
			text := string(r.body)
			if !strings.Contains(text, strings.ReplaceAll(tt.says, `"`, `\"`)) || tt.path != "" && r.at("details.0.path") != tt.path {
				t.Errorf("says %.600s", text)
			}
			ordertest.Below(is, time.Since(begun), time.Minute) // a refusal is cheap; the machine may be busy
		})
	}
	is.New(t).Equal(len(s.must(t, "GET", "/api/workers", "").at("items").([]any)), 0)
}

// TestExportHoldsNoSecrets exports a worker whose webhook has secrets in its address.
func TestExportHoldsNoSecrets(t *testing.T) {
	is, s := onServer(t, idle)
	id := s.must(t, "POST", "/api/workers", `{"title":"T"}`).text("id")
	hook, err := s.store.Effects.SetWebhook(t.Context(), s.owner.Caller, id,
		"https://ann:pw12345@example.com/hook?key=geheim#frag")
	is.NoErr(err)
	file := string(s.must(t, "GET", "/api/workers/"+id+"/export", "").body)
	is.True(strings.Contains(file, `webhook: "https://example.com/hook"`))
	for _, secret := range []string{"pw12345", "geheim", "frag", hook.Token, hook.SigningSecret} {
		is.True(!strings.Contains(file, secret)) // the secret is not in the file
	}
	made := s.must(t, "POST", "/api/workers/import", file, "Content-Type: application/yaml")
	fresh, err := s.store.Effects.Webhook(t.Context(), s.owner.Caller, made.text("id"))
	is.NoErr(err)
	is.Equal(fresh.URL, "https://example.com/hook")
	is.True(fresh.Token != hook.Token && fresh.Token != "") // the new worker has its own secrets
}

// FuzzYAML converts random files. The result is small and is JSON, and an exported text is imported
// unchanged.
func FuzzYAML(f *testing.F) {
	for _, file := range []string{"a: 1\n", "a: |\n  b\n c", "- - - x", "? a\n: b", "a: &b [*b]", "{a: [1, .5, ~, 'x', \"\\u2028\"]}", "a: >-\n\n  b\n\n",
		"%YAML 1.2\n---\na", "!!map {a: b}", "<<: *a", "\"a\": 'b''c'", "a:\n- b\n-\n- c: d\n", "0x1F: 1_000\n", "a: 2001-01-01", "#", "a: b: c", "\t", "[a]: b", "a: |2\n   x"} {
		f.Add(file)
	}
	f.Add(strings.Repeat("{", 65)) // no nested values
	f.Add(strings.Repeat("[", 40) + "\n" + strings.Repeat("]", 40))
	f.Fuzz(func(t *testing.T, text string) {
		out, err := handlers.YAMLToJSON([]byte(text))
		if err == nil && (!json.Valid(out) || len(out) > 8*len(text)+64) {
			t.Fatalf("%q becomes %q", text, out)
		}
		if err != nil && !db.IsKind(err, db.Invalid) && !db.IsKind(err, db.TooLarge) {
			t.Fatalf("%q: %v", text, err)
		}
		if strings.Contains(text, "\x00") || strings.ToValidUTF8(text, "") != text || len(text) > 1000 {
			return
		}
		back, err := handlers.YAMLToJSON([]byte("a: " + handlers.YAMLText(text, "  ") + "\nb: 1\n"))
		var value struct{ A string }
		if err != nil || json.Unmarshal(back, &value) != nil || value.A != text {
			t.Fatalf("%q is written as %q and read as %q: %v", text, handlers.YAMLText(text, "  "), back, err)
		}
	})
}

// keys returns n lines of YAML, each with another key.
func keys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

// TestImportIsReadElsewhere imports a file that the parser cannot read in its time. The process of a
// document reader reads it, and the server tells its author.
func TestImportIsReadElsewhere(t *testing.T) {
	is, s := onServer(t, func(set *settings) { set.API.Documents = failingPool{} })
	answer := s.do(t, "POST", "/api/workers/import", "journeyman: 1\ntitle: T\n", "Content-Type: application/yaml")
	is.Equal(answer.status, 400)
	is.True(strings.Contains(string(answer.body), "more than 4s to read by yaml"))
}

// A failingPool ends each reader as if its time were over.
type failingPool struct{}

func (failingPool) Load() (running, waiting int64) { return 0, 0 }

func (failingPool) Run(_ context.Context, filter string, _ []byte) ([]byte, error) {
	return nil, &sandbox.FilterError{Message: "it takes more than 4s to read by " + filter}
}
