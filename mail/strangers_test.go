package mail

import (
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// asking returns a text that the offline model follows.
func asking(lines ...string) string { return "```offline\n" + strings.Join(lines, "\n") + "\n```" }

// TestStrangersAreApart has Ann mail a contract, and Eve mail the same worker for it: both have a
// file of that name, and each gets her own.
func TestStrangersAreApart(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	const own = "%PDF-1.4 Eve's own"
	large := "%PDF-1.4 " + strings.Repeat("A large contract. ", 11<<20/18)
	publish := asking(`tool list_files {}`, `tool publish_file {"path": "contract.pdf"}`, "say done")
	for from, content := range map[string]string{"carl@strangers.example": large, "eve@strangers.example": own} {
		is.Equal(p.send(from, p.address(), withFile(publish, "contract.pdf", content, "From: "+from)), "250 2.0.0 OK: queued")
	}
	replies := p.replies(2, store.EmailKept)
	for _, r := range replies {
		_, source := p.source(r)
		turn := p.turn(r)
		is.True(turn.Stranger())
		files, err := p.store.FilesByTask(t.Context(), turn)
		is.NoErr(err)
		is.Equal(len(files), 1)
		is.Equal(files[0].Path, "tasks/"+turn.TaskID+"/contract.pdf")
		steps, err := p.store.Journal(t.Context(), turn)
		is.NoErr(err)
		is.Equal(strings.Count(string(steps[0].Calls[0].Output), `\t`), 1) // there is no other file
		address := "/files/tasks/" + turn.TaskID + "/contract.pdf?v="
		if r.To == "eve@strangers.example" {
			is.Equal(files[0].Size, int64(len(own)))
			is.True(strings.Contains(source, `filename="contract.pdf"`) || strings.Contains(source, "filename=contract.pdf"))
			is.True(!strings.Contains(source, address))
			continue
		}
		is.Equal(files[0].Size, int64(len(large)))
		is.True(strings.Contains(strings.ReplaceAll(strings.ReplaceAll(source, "=\r\n", ""), "=3D", "="), address)) // too large, so there is a link
	}
}

// TestStrangerContinuesTask checks that the reply of a non-member finds the files of the first mail, and
// no others.
func TestStrangerContinuesTask(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	p := newPost(t, false, nil)
	const eve = "eve@strangers.example"
	is.Equal(p.send(eve, p.address(), withFile(asking(`tool write_file {"path": "notes.txt", "content": "noted"}`, "say ok"), "a.pdf", "first", "From: "+eve,
		"Message-ID: <1@strangers.example>")), "250 2.0.0 OK: queued")
	first := p.replies(1, store.EmailKept)[0]
	is.Equal(p.send(eve, p.worker.ID+"+"+first.TaskID+"@"+domain, withFile(asking(`tool list_files {}`, "say {{last}}"), "a.pdf", "second", "From: "+eve,
		"Message-ID: <2@strangers.example>")), "250 2.0.0 OK: queued")
	second := p.turn(p.replies(2, store.EmailKept)[1])
	is.Equal(second.TaskID, first.TaskID)
	for _, name := range []string{"a.pdf\t", "a (2).pdf\t", "notes.txt\t"} {
		is.True(strings.Contains(second.OutputText, name))
	}
	is.Equal(len(p.workspace(p.worker)), 3)
}
