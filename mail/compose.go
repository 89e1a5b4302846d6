package mail

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"path"
	"strings"

	"journeyman/mail/message"
	"journeyman/runner"
	"journeyman/runner/view"
	"journeyman/store"
	"journeyman/store/visible"
)

// compose creates a mail of the outbox. The text depends on its kind and its recipient.
func (s *Server) compose(ctx context.Context, r store.Reply) (subject string, raw []byte, err error) {
	switch r.Kind {
	case store.ReplyAlert:
		return s.composeAlert(r)
	case store.ReplyNotice:
		return s.composeNotice(ctx, r)
	}
	worker, err := s.cfg.Store.WorkerOfTurn(ctx, r.Turn)
	if err != nil {
		return "", nil, err
	}
	// The address in ReplyTo names the task, so that an answer without known headers finds it.
	reply := message.Reply{
		ID:       r.ID + "@" + s.cfg.Domain,
		Date:     r.CreatedAt,
		From:     WorkerAddress(worker.ID, s.cfg.Domain),
		FromName: worker.Title,
		To:       r.To,
		ReplyTo:  taskAddress(worker.ID, r.Turn.TaskID, s.cfg.Domain),
	}
	switch {
	case r.UserID != "":
		err = s.writeRequest(ctx, r, &reply)
	case r.Kind == store.ReplyQuestion:
		err = s.writeQuestion(ctx, r, &reply)
	default:
		err = s.writeAnswer(ctx, r, &reply)
	}
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	if err := reply.Write(&boundWriter{ctx, &b}); err != nil {
		return "", nil, fmt.Errorf("compose reply: %w", err)
	}
	return reply.Subject(), b.Bytes(), nil
}

// A boundWriter returns an error when its context has ended, so that large files do not delay a stop.
// Also, the HTML of a reply is incomplete if the context ended while it was rendered.
type boundWriter struct {
	ctx context.Context
	w   io.Writer
}

// Write writes to the underlying writer.
func (b *boundWriter) Write(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.w.Write(p)
}

// original returns the header of the mail that a reply answers.
func (s *Server) original(ctx context.Context, r store.Reply) (message.Header, error) {
	source, err := s.cfg.Store.Effects.EmailSource(ctx, r.Inbound)
	if err != nil {
		return message.Header{}, err
	}
	// The turn took so long that the source of the mail was deleted. Its row still has the id,
	// which keeps the reply in the thread.
	if source == nil {
		id := r.Inbound.MessageID
		return message.Header{MessageID: id, HasID: message.CanBeNamed(id), Subject: r.Inbound.Subject}, nil
	}
	return message.ReadHeader(source), nil
}

// writeAnswer fills in reply as the mail with the answer of a turn.
func (s *Server) writeAnswer(ctx context.Context, r store.Reply, reply *message.Reply) error {
	files, err := s.cfg.Store.FilesByTurn(ctx, r.Turn)
	if err != nil {
		return err
	}
	if reply.Original, err = s.original(ctx, r); err != nil {
		return err
	}
	// Leave out files of the senders, who have them.
	attached, linked := splitFiles(store.TurnFiles(files, r.Turn.Num, store.Published))
	reply.Text = visible.Running(answer(r.Turn)) + s.links(linked)
	reply.HTML = s.page(forTurn(ctx, r.Turn), reply.Text)
	for _, f := range attached {
		open := func() (io.ReadCloser, error) { return s.cfg.Store.OpenBlob(ctx, f.SHA256) }
		reply.Files = append(reply.Files, message.ReplyFile{Name: visible.Running(path.Base(f.Path)), MediaType: f.MediaType,
			Open: open})
	}
	return nil
}

// answer returns the text of a reply to a turn that has ended, as Markdown.
func answer(t store.Turn) string {
	switch {
	case t.Status == store.Aborted:
		return "Your request was cancelled before it was finished."
	case t.Status != store.Completed:
		why := "an internal error happened"
		// A provider may have written the message, so make it one line.
		if t.Failure != nil && t.Failure.Message != "" {
			why = message.OneLine(t.Failure.Message)
		}
		return "Your request could not be completed: " + strings.TrimRight(why, ".") + "."
	}
	text := strings.TrimSpace(t.OutputText)
	if t.StructuredOutput != nil { // the text of the answer is the same JSON on one line
		if lines, ok := view.Indent(t.StructuredOutput); ok {
			text = "```json\n" + lines + "\n```"
		}
	}
	if text == "" {
		text = "Your request was completed. There is no text answer."
	}
	why := ""
	switch t.IncompleteReason {
	case store.ReasonBudget:
		why = "the limit of " + t.IncompleteLimit + " for one request was reached"
	case store.ReasonMaxTokens:
		why = "it is longer than the model can write at once"
	case store.ReasonFilter:
		why = "the model's provider withheld a part of it"
	}
	if why != "" {
		text += "\n\n---\n\nThis answer is not complete: " + why + "."
	}
	return text
}

// maxAttached limits the bytes of published files that are attached to a reply. The
// reply has links to the other files.
const maxAttached = 10 << 20

// splitFiles returns the files to attach, and the files that would exceed maxAttached.
func splitFiles(files []store.File) (attached, linked []store.File) {
	room := int64(maxAttached)
	for _, f := range files {
		if f.Size <= room {
			attached = append(attached, f)
			room -= f.Size
		} else {
			linked = append(linked, f)
		}
	}
	return attached, linked
}

// links returns a list of links to files, as Markdown.
func (s *Server) links(files []store.File) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nFiles too large for a mail:\n\n")
	for _, f := range files {
		// Brackets in a name would end the link.
		name := strings.NewReplacer("[", "(", "]", ")").Replace(visible.Line(f.Path))
		fmt.Fprintf(&b, "- [%s](%s)\n", name, s.cfg.Runner.FileURL(f))
	}
	return b.String()
}

// page returns an answer as HTML. If the answer cannot be rendered within the limits,
// the page shows its Markdown.
func (s *Server) page(ctx context.Context, markdown string) string {
	var page []byte
	var err error
	if runner.CheapMarkdown(markdown) {
		page, err = message.RenderMarkdown([]byte(markdown))
	} else {
		ctx, cancel := context.WithTimeout(ctx, convertTime)
		defer cancel()
		page, err = s.cfg.Markdown(ctx, []byte(markdown))
	}
	if err != nil {
		page = []byte("<pre>" + html.EscapeString(markdown) + "</pre>\n")
	}
	return "<!DOCTYPE html>\n<html><body>\n" + string(page) + "</body></html>\n"
}
