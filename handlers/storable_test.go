package handlers_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/storetest"
)

// hostilePieces are pieces of JSON strings that a database may refuse or change: NUL, halves of
// surrogates, invalid UTF-8 and byte order marks. Some are escaped, others are raw bytes.
var hostilePieces = []string{`\u0000`, `\ud800`, `\udc00`, "\xff", "\xed\xa0\x80", "\xe2\x82", `\ufeff`, "\ufeff", `\u2028`,
	`\ufffd`, `\u0001`, "\U0001F600", "é", "a", " ", `\n`}

// hostileText returns the content of a JSON string. The first texts hold one piece each.
func hostileText(random *rand.Rand, round int) string {
	if round < len(hostilePieces) {
		return "x" + hostilePieces[round] + "y"
	}
	text := "x"
	for range 1 + random.IntN(8) {
		text += hostilePieces[random.IntN(len(hostilePieces))]
	}
	return text
}

// TestFirstAnswerIsThatOfLaterReads writes hostile texts to each text field of the API. The service
// either refuses a text, or the first answer equals later reads, whichever engine stores it.
func TestFirstAnswerIsThatOfLaterReads(t *testing.T) {
	_, s := onServer(t)
	worker := s.newWorker(t, fields{})
	schedule := s.scheduled(t, worker, `{"type":"interval","intervalSeconds":3600}`).text("id")
	random := rand.New(rand.NewPCG(1, 2))
	for round := range storetest.Rounds(200, 20) {
		text := hostileText(random, round)
		for _, field := range []string{"title", "summary", "instructions", "prompt"} {
			body := `{"` + field + `":"` + text + `"}`
			s.readsBack(t, "POST", "/api/workers", body, func(r response) string {
				return "/api/workers/" + r.text("id") + "/template"
			})
			s.readsBack(t, "PATCH", "/api/workers/"+worker, body, func(response) string {
				return "/api/workers/" + worker + "/template"
			})
		}
		schema := `{"outputSchema":{"type":"object","description":"` + text + `"}}`
		s.readsBack(t, "POST", "/api/workers", schema, func(r response) string {
			return "/api/workers/" + r.text("id") + "/template"
		})
		schedules := "/api/workers/" + worker + "/schedules"
		at := func(r response) string { return schedules + "/" + r.text("id") }
		if round%10 == 0 { // a worker can have few schedules
			s.readsBack(t, "POST", schedules, `{"input":"`+text+`","when":{"type":"interval","intervalSeconds":60}}`, at)
		}
		s.readsBack(t, "PATCH", schedules+"/"+schedule, `{"input":"`+text+`"}`, at)
		s.answersAsStored(t, text)
	}
}

// readsBack sends a write. Unless it is refused, the answer must equal that of a read.
func (s *site) readsBack(t *testing.T, method, path, body string, read func(response) string) {
	t.Helper()
	is := is.New(t)
	first := s.do(t, method, path, body)
	if first.status == 400 {
		return
	}
	is.Equal(first.status, 200)
	is.Equal(string(first.body), string(s.must(t, "GET", read(first), "").body)) // byte for byte
}

// answersAsStored runs tasks whose texts are hostile: in JSON, which waits for the end or not, and in
// a form.
func (s *site) answersAsStored(t *testing.T, text string) {
	t.Helper()
	is := is.New(t)
	body := `{"input":"` + text + `\n` + strings.Trim(encode(scripted("say {{input}}")), `"`) + `"}`
	if run := s.do(t, "POST", "/api/tasks", body); run.status != 400 {
		is.Equal(run.status, 200)
		is.Equal(string(run.body), s.readRun(t, run.text("metadata.turnId")))
		queued := s.do(t, "POST", "/api/tasks", body, "Prefer: respond-async")
		is.Equal(queued.status, 202)
		later := s.must(t, "GET", "/api/tasks/"+queued.text("metadata.taskId"), "")
		is.Equal(queued.text("messages.0.parts.0.text"), later.text("turns.0.input"))
	}
	sent := s.upload(t, []part{{name: "input", content: text}, {name: "file", file: "a" + text + ".txt", content: "a"}})
	if sent.status != 400 {
		is.Equal(sent.status, 200)
		is.Equal(string(sent.body), s.readRun(t, sent.text("metadata.turnId")))
	}
}
