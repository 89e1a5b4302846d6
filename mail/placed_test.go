package mail

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store"
)

// TestNotesNamePlacedFiles sends mails whose files have names that the workspace has already. The notes in the
// instruction name the new files.
func TestNotesNamePlacedFiles(t *testing.T) {
	t.Parallel()
	attached := func(content string) string {
		return "--b\nContent-Type: message/rfc822; name=report.eml\n\nSubject: Report\n\n" + content +
			"\n--b\nContent-Type: application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m\n\n" + content + "\n--b--"
	}
	multipart := []string{"Subject: Papers", "MIME-Version: 1.0", "Content-Type: multipart/mixed; boundary=b"}
	long := strings.Repeat("It rained. ", 5) + "\n"
	for name, tt := range map[string]struct {
		raw  func(content string) string
		says []string // in the instruction of the second mail
		file string   // which has the second content
	}{
		"no text": {func(content string) string { return withFile("", "scan.pdf", content, "Subject: ") },
			[]string{"See the attached files: scan (2).pdf"}, "scan (2).pdf"},
		"a name that no file may have": {func(content string) string { return withFile("", "a:b?.pdf", content, "Subject: ") },
			[]string{"See the attached files: a_b_ (2).pdf"}, "a_b_ (2).pdf"},
		"encrypted part": {func(content string) string { return letter(attached(content), multipart...) },
			[]string{"It is the file smime (2).p7m."}, "smime (2).p7m"},
		"attached mail": {func(content string) string { return letter(attached(content), multipart...) },
			[]string{"[Attached mail, file report (2).eml:]"}, "report (2).eml"},
		"long attached mail": {func(content string) string { return letter(attached(strings.Repeat(long, 500)+content), multipart...) },
			[]string{"[Attached mail, file report (2).eml:]", "[The rest is in the file report (2).eml.]"}, "report (2).eml"},
		"same name twice": {func(content string) string {
			return strings.Replace(withFile("", "scan.pdf", content, "Subject: "), "--b\n\n\n", "--b\nContent-Type: application/pdf; name=scan.pdf\n\nother"+content+"\n", 1)
		}, []string{"See the attached files: scan (3).pdf, scan (4).pdf"}, "scan (4).pdf"},
		"words of the author": {func(content string) string { return withFile("Read scan.pdf", "scan.pdf", content) },
			[]string{"Read scan.pdf"}, "scan (2).pdf"}, // the envelope names the file
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			c := &talk{post: newPost(t, true, nil)}
			var turn store.Turn
			for _, content := range []string{"one", "two"} {
				is.Equal(c.send("ann@example.com", c.address(), tt.raw(content)), "250 2.0.0 OK: queued")
				list := c.emails(store.Inbound)
				turn = c.turn(list[len(list)-1])
			}
			for _, says := range tt.says {
				if !strings.Contains(turn.Input, says) {
					t.Errorf("%q lacks %q", turn.Input, says)
				}
			}
			found := false
			for path, content := range c.workspace(c.worker) {
				found = found || filepath.Base(path) == tt.file && strings.HasSuffix(strings.TrimSpace(content), "two")
			}
			is.True(found)
		})
	}
}
