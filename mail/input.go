package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"journeyman/mail/message"
	"journeyman/store"
)

// An input is the content of a mail for the workers to which it is sent.
type input struct {
	subject  string
	body     message.Body
	files    []store.File    // the attachments, and files of quoted mails
	attached int             // number of attachments
	quoted   map[string]bool // names of the files of quoted mails
}

// Limits of the mails that a mail quotes.
const (
	maxQuoted = 8 << 10   // bytes of quotes in an instruction; longer ones become a file
	maxKnown  = 30        // mails of a task, in each direction, with which quotes are compared
	maxSource = 256 << 10 // bytes of each of these mails
)

// read reads the body of the mail and keeps its attachments as files.
func (d *delivery) read(ctx context.Context) (*input, error) {
	ctx, err := d.forAuthor(ctx)
	if err != nil {
		return nil, err
	}
	in := &input{subject: d.header.Subject, quoted: map[string]bool{}}
	in.body, err = d.readBody(ctx, d.header, d.raw, func(a message.Attachment) error {
		f, err := d.cfg.Runner.Keep(ctx, d.worker().OrganizationID, a.Name, a, d.cfg.MaxSize)
		in.files = append(in.files, f)
		return err
	})
	in.attached = len(in.files)
	return in, err
}

// isEmpty reports whether the mail says nothing at all.
func (in *input) isEmpty() bool { return in.own() == "" && in.body.History == "" }

// own returns what the author has written. The subject is the instruction if there is no text, or maybe none but
// the line of a mail program.
func (in *input) own() string {
	switch {
	case in.body.Faint:
		return joinTexts(in.subject, in.body.Text)
	case in.body.Text != "" || in.subject != "":
		return cmp.Or(in.body.Text, in.subject)
	case in.attached > 0:
		return "See the attached files: " + pathsOf(in.files[:in.attached])
	case in.body.History == "":
		return in.body.Signature
	}
	return ""
}

// pathsOf lists the paths of files.
func pathsOf(files []store.File) string {
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return strings.Join(paths, ", ")
}

// quoted returns the mails that the mail quotes, as far as the task does not have them, as a part of the
// instruction. Without a task it returns all of them: the thread is new to the service. It also returns all of them
// if the mail says nothing else. If they are long, quoted keeps them as a file and returns its name.
func (d *delivery) quoted(ctx context.Context, task store.Task, in *input) (string, error) {
	history := in.body.History
	if history != "" && task.ID != "" {
		known, err := d.mailsOf(ctx, task)
		if err != nil {
			return "", err
		}
		history = in.body.Beyond(known)
	}
	if history == "" && in.own() == "" { // the author answers with what the task knows: a turn needs some text
		history = in.body.History
	}
	if len(history) <= maxQuoted {
		return quotedBlock(history), nil
	}
	// The name depends on the content, so another file of the workspace has it only if it is the same.
	name := fmt.Sprintf("quoted-history-%x.txt", sha256.Sum256([]byte(history)))[:len("quoted-history-")+8] + ".txt"
	if !in.quoted[name] {
		f, err := d.cfg.Runner.Keep(ctx, d.worker().OrganizationID, name, strings.NewReader(history+"\n"), d.cfg.MaxSize)
		if err != nil {
			return "", err
		}
		in.files, in.quoted[name] = append(in.files, f), true
	}
	return "(The author quoted older mail. It is in the file " + name + ".)", nil
}

// mailsOf returns the texts of the newest mails of a task. A mail whose source was deleted has none, so a quote of
// it counts as new.
func (d *delivery) mailsOf(ctx context.Context, task store.Task) ([]string, error) {
	list, err := d.cfg.Store.TaskEmails(ctx, task, maxKnown)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range list {
		raw, err := d.cfg.Store.EmailBeginning(ctx, e, maxSource)
		if err != nil && !store.IsKind(err, store.NotFound) { // the file may be gone: a repetition would not find it
			return nil, err
		}
		texts = append(texts, message.Words(raw))
	}
	return texts, nil
}

// quotedBlock returns older mail as a block that cannot be confused with the author's own words.
func quotedBlock(history string) string {
	if history == "" {
		return ""
	}
	var b strings.Builder
	b.WriteString("(The author quoted older mail:)")
	for line := range strings.SplitSeq(history, "\n") {
		b.WriteString("\n" + strings.TrimRight("> "+line, " "))
	}
	return b.String()
}

// joinTexts joins two texts, of which one may be empty, with an empty line between them.
func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}
