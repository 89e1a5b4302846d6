package mail

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"journeyman/mail/message"
	"journeyman/store"
	"journeyman/store/db"
)

// An input is the content of a mail for the workers to which it is sent.
type input struct {
	subject  string
	body     message.Body
	files    []store.File   // the attachments, and files of quoted mails
	attached int            // number of attachments
	quoted   map[string]int // places in files of those of quoted mails, by name
	ending   string         // a note below the text
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
	in := &input{subject: d.header.Subject, quoted: map[string]int{}}
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
		return "See the attached files: " + strings.Join(names(in.files[:in.attached]), ", ")
	case in.body.History == "":
		return in.body.Signature
	}
	return ""
}

// names returns the names of files in their folders.
func names(files []store.File) []string {
	list := make([]string, len(files))
	for i, f := range files {
		list[i] = store.Folder{WorkerID: f.WorkerID, TaskID: f.TaskID}.Local(f.Path)
	}
	return list
}

// placedAs returns the input for a recipient in whose folder the files are. Their names are other ones than the
// sender's if the folder had files of these names.
func (in *input) placedAs(files []store.File) *input {
	placed := *in
	placed.files = files
	list := names(files)
	placed.body = in.body.Named(func(attachment int) string {
		if attachment < min(len(list), in.attached) {
			return list[attachment]
		}
		return ""
	})
	return &placed
}

// A quotation is what the mail quotes and a recipient's task does not have.
type quotation struct {
	text string
	file int // place in the input's files of the file with the text; -1 for none
}

// words returns the quotation as a part of the instruction.
func (in *input) words(q quotation) string {
	if q.file < 0 {
		return quotedBlock(q.text)
	}
	return "(The author quoted older mail. It is in the file " + names(in.files)[q.file] + ".)"
}

// quoted returns the mails that the mail quotes, as far as the task does not have them. Without a task it returns all
// of them: the thread is new to the service. It also returns all of them if the mail says nothing else. If they are
// long, quoted keeps them as a file.
func (d *delivery) quoted(ctx context.Context, task store.Task, in *input) (quotation, error) {
	history := in.body.History
	if history != "" && task.ID != "" {
		known, err := d.mailsOf(ctx, task)
		if err != nil {
			return quotation{}, err
		}
		history = in.body.Beyond(known)
	}
	if history == "" && in.own() == "" { // the author answers with what the task knows: a turn needs some text
		history = in.body.History
	}
	if len(history) <= maxQuoted {
		return quotation{history, -1}, nil
	}
	// The name depends on the content, so that several recipients with the same quotation have one file.
	name := fmt.Sprintf("quoted-history-%x.txt", sha256.Sum256([]byte(history)))[:len("quoted-history-")+8] + ".txt"
	if _, kept := in.quoted[name]; !kept {
		f, err := d.cfg.Runner.Keep(ctx, d.worker().OrganizationID, name, strings.NewReader(history+"\n"), d.cfg.MaxSize)
		if err != nil {
			return quotation{}, err
		}
		in.files, in.quoted[name] = append(in.files, f), len(in.files)
	}
	return quotation{"", in.quoted[name]}, nil
}

// mailsOf returns the texts of the newest mails of a task. A mail whose source was deleted has none, so a quote of
// it counts as new.
func (d *delivery) mailsOf(ctx context.Context, task store.Task) ([]string, error) {
	list, err := d.cfg.Store.Effects.TaskEmails(ctx, task, maxKnown)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range list {
		raw, err := d.cfg.Store.Effects.EmailBeginning(ctx, e, maxSource)
		if err != nil && !db.IsKind(err, db.NotFound) { // the file may be gone: a repetition would not find it
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
