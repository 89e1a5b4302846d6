package handlers_test

import (
	"fmt"
	"strings"
	"testing"

	"journeyman/mail"
	"journeyman/store/gate"
	"journeyman/store/ordertest"
)

// TestOrganizationsDisk fills what an organization may store, in each way in. Every later way in is refused
// with the same answer, reading goes on, and another organization notices nothing.
func TestOrganizationsDisk(t *testing.T) {
	is, s := onServer(t, func(set *settings) {
		set.Store.OrgDisk = gate.DiskLimit{Bytes: 100_000}
		set.mail = &mail.Config{Domain: "mail.example", MaxSize: 1 << 20}
	})
	rival := s.stranger(t)
	worker := s.must(t, "POST", "/api/workers", `{"title":"W","instructions":"Help."}`).text("id")
	task := s.must(t, "POST", "/api/tasks", `{"workerId":"`+worker+`","input":"Hello"}`)
	file := []part{{name: "input", content: "Hi"}, {name: "f", file: "a.txt", content: strings.Repeat("x", 60_000)}}
	disk := s.store.DiskOf(s.owner.OrganizationID)
	before := disk.Left()

	// The file counts in the store and in the workspace: too much, so nothing of it stays.
	refused := s.upload(t, file)
	is.Equal(refused.refused(), "507 organization_full")
	is.Equal(refused.header.Get("x-should-retry"), "false")
	is.Equal(refused.header.Get("Retry-After"), "")
	is.True(strings.Contains(refused.text("message"), "--org-disk")) // the way out
	refusedBytes := before - disk.Left()
	ordertest.AtLeast(is, refusedBytes, 60_000) // the content is on the disk until the sweep, the copy is not
	ordertest.Below(is, refusedBytes, 61_000)   // the content is on the disk until the sweep, the copy is not
	is.NoErr(s.store.MeasureOrganizations(t.Context()))
	refusedBytes = before - disk.Left()
	ordertest.AtLeast(is, refusedBytes, 60_000)
	ordertest.Below(is, refusedBytes, 62_000)

	// A tool that writes too much gets the refusal as its result, and what was written stays.
	run := func(line string) string {
		return s.must(t, "POST", "/api/tasks", encode(fields{"workerId": worker, "input": "```offline\n" + line + "\n```"})).
			text("output_text")
	}
	write := `tool write_file ` + encode(fields{"path": "ok.txt", "content": strings.Repeat("z", 4000)}) + "\nsay {{last}}"
	disk.Add(disk.Left() - 10_000)
	is.True(!strings.Contains(run(write), "as much as it may"))
	is.True(strings.Contains(run("tool publish_file {\"path\":\"ok.txt\"}\nsay {{last}}"), "as much as it may"))
	disk.Add(disk.Left() - 10_000)
	is.True(!strings.Contains(run("tool publish_file {\"path\":\"ok.txt\"}\nsay {{last}}"), "as much as it may"))
	disk.Add(disk.Left() - 6000)
	is.True(strings.Contains(run(strings.Replace(write, "ok", "no", 1)), "as much as it may"))

	disk.Add(disk.Left())
	raw := "From: ann@example.com\r\nTo: " + worker + "@mail.example\r\nSubject: Hi\r\nMessage-ID: <1@example.com>\r\n\r\nHello\r\n"
	for name, r := range map[string]response{
		"task":      s.do(t, "POST", "/api/tasks", `{"input":"Hello"}`),
		"follow-up": s.do(t, "POST", "/api/tasks", `{"input":"Hello","taskId":"`+task.text("metadata.taskId")+`"}`),
		"continue":  s.do(t, "POST", "/api/workers/"+worker, `{"input":"Hello"}`),
		"worker":    s.do(t, "POST", "/api/workers", `{"title":"X"}`),
		"both":      s.do(t, "POST", "/api/workers", `{"title":"X","input":"Hello"}`),
		"change":    s.do(t, "PATCH", "/api/workers/"+worker, `{"instructions":"More."}`),
		"form":      s.upload(t, file[:1]),
		"mail":      s.do(t, "POST", "/api/inbound-email", raw, "Content-Type: message/rfc822"),
		"import": s.do(t, "POST", "/api/workers/import", "journeyman: 1\ntitle: X\n",
			"Content-Type: application/yaml"),
	} {
		if r.refused() != "507 organization_full" {
			t.Errorf("%s answered %d %s", name, r.status, r.body)
		}
	}
	s.must(t, "GET", "/api/workers/"+worker, "")
	s.must(t, "GET", "/api/tasks/"+task.text("metadata.taskId"), "")
	s.must(t, "GET", fmt.Sprintf("/api/workers/%s/files/ok.txt", worker), "")
	s.must(t, "DELETE", "/api/tasks/"+task.text("metadata.taskId"), "")
	s.must(t, "GET", "/readyz", "") // it is no fault of the server
	rival.must(t, "POST", "/api/tasks", `{"input":"Hello"}`)
}
