package mail

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strings"

	"github.com/emersion/go-message/mail"
	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"journeyman/runner"
	"journeyman/store"
)

// maxAttached is how much of published files is attached to a reply, in bytes.
// The rest is linked to.
const maxAttached = 10 << 20

// A composer makes replies. It is safe for concurrent use.
type composer struct {
	store    *store.Store
	runner   *runner.Runner
	domain   string
	markdown goldmark.Markdown
	policy   *bluemonday.Policy
}

func newComposer(cfg Config) *composer {
	return &composer{store: cfg.Store, runner: cfg.Runner, domain: cfg.Domain, policy: htmlPolicy(),
		markdown: goldmark.New(goldmark.WithExtensions(extension.GFM),
			goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(imagesToLinks{}, 100))))}
}

// htmlPolicy allows what Markdown makes, and nothing that a mail program would
// load: a picture in an answer could tell its server who reads it, and what the
// model was made to write into its address.
func htmlPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowAttrs("href").OnElements("a")
	p.RequireNoReferrerOnLinks(true)
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("th", "td")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowElements("h1", "h2", "h3", "h4", "h5", "h6", "p", "br", "hr", "b", "strong", "i", "em", "del", "code", "pre", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td")
	return p
}

// imagesToLinks makes pictures in Markdown links to them.
type imagesToLinks struct{}

// Transform changes the document.
func (imagesToLinks) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var images []*ast.Image
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function gives no error
		if img, ok := n.(*ast.Image); ok && entering {
			images = append(images, img)
		}
		return ast.WalkContinue, nil
	})
	for _, img := range images {
		link := ast.NewLink()
		link.Destination, link.Title = img.Destination, img.Title
		for c := img.FirstChild(); c != nil; c = img.FirstChild() {
			link.AppendChild(link, c)
		}
		if !link.HasChildren() {
			link.AppendChild(link, ast.NewString([]byte("image")))
		}
		img.Parent().ReplaceChild(img.Parent(), img, link)
	}
}

// html is Markdown as a safe page.
func (c *composer) html(markdown string) (string, error) {
	var b bytes.Buffer
	if err := c.markdown.Convert([]byte(markdown), &b); err != nil {
		return "", fmt.Errorf("render answer: %w", err)
	}
	return "<!DOCTYPE html>\n<html><body>\n" + c.policy.Sanitize(b.String()) + "</body></html>\n", nil
}

// compose makes the reply to a mail: the turn's answer, the files it published,
// and what threads it.
func (c *composer) compose(ctx context.Context, r store.Reply) (subject string, raw []byte, err error) {
	worker, err := c.store.WorkerOfTurn(ctx, r.Turn)
	if err != nil {
		return "", nil, err
	}
	source, err := c.store.EmailSource(ctx, r.Inbound)
	if err != nil {
		return "", nil, err
	}
	files, err := c.store.FilesByTurn(ctx, r.Turn.Num)
	if err != nil {
		return "", nil, err
	}
	attached, linked := c.split(runner.TurnFiles(files, r.Turn.Num))
	inbound := ReadHeader(source)
	if source == nil { // the turn took longer than the mail was kept
		inbound = Header{MessageID: r.Inbound.MessageID, HasID: !strings.HasPrefix(r.Inbound.MessageID, contentPrefix), Subject: r.Inbound.Subject}
	}
	h := c.header(r, worker, inbound)
	subject, err = h.Subject()
	if err != nil {
		return "", nil, fmt.Errorf("compose reply: %w", err)
	}
	var b bytes.Buffer
	if err := c.write(&b, h, answer(r.Turn)+c.links(linked), attached); err != nil {
		return "", nil, fmt.Errorf("compose reply: %w", err)
	}
	return subject, b.Bytes(), nil
}

// header threads the reply (RFC 5322, section 3.6.4) and marks it as a program's
// (RFC 3834), so that none answers it.
func (c *composer) header(r store.Reply, worker store.Worker, inbound Header) mail.Header {
	var h mail.Header
	h.SetDate(r.CreatedAt)
	h.SetAddressList("From", []*mail.Address{{Name: oneLine(worker.Title), Address: WorkerAddress(worker.ID, c.domain)}})
	h.SetAddressList("To", []*mail.Address{{Address: r.To}})
	h.SetAddressList("Reply-To", []*mail.Address{{Address: taskAddress(worker.ID, r.Turn.TaskID, c.domain)}})
	h.SetSubject(replySubject(inbound.Subject))
	h.SetMessageID(r.ID + "@" + c.domain)
	if inbound.HasID {
		h.SetMsgIDList("In-Reply-To", []string{inbound.MessageID})
		h.SetMsgIDList("References", replyReferences(inbound))
	}
	h.Set("Auto-Submitted", "auto-replied")
	h.Set("X-Auto-Response-Suppress", "All")
	h.Set("MIME-Version", "1.0")
	return h
}

// replyReferences are those of the mail answered, the first and the newest, and
// its own id.
func replyReferences(inbound Header) []string {
	const most = 20
	refs := inbound.References
	if len(refs) == 0 && len(inbound.InReplyTo) == 1 {
		refs = inbound.InReplyTo
	}
	if len(refs) > most {
		refs = append([]string{refs[0]}, refs[len(refs)-most+1:]...)
	}
	var list []string
	for _, id := range append(refs, inbound.MessageID) {
		if strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '<' || r == '>' }) < 0 {
			list = append(list, id)
		}
	}
	return list
}

// replyPrefix matches how the subject of an answer begins.
var replyPrefix = regexp.MustCompile(`(?i)^\s*(re|aw|sv|antw|vs|odp|ynt|回复|答复)\s*(\[\d+\])?\s*[:：]`)

func replySubject(subject string) string {
	switch {
	case subject == "":
		return "Re: your mail"
	case replyPrefix.MatchString(subject):
		return subject
	}
	return "Re: " + subject
}

// answer is what a turn has to say, as Markdown.
func answer(t store.Turn) string {
	switch {
	case t.Status == store.Aborted:
		return "Your request was cancelled before it was finished."
	case t.Status != store.Completed:
		why := "an internal error happened"
		if t.Failure != nil && t.Failure.Message != "" {
			why = oneLine(t.Failure.Message)
		}
		return "Your request could not be completed: " + strings.TrimRight(why, ".") + "."
	}
	said := strings.TrimSpace(t.OutputText)
	if t.StructuredOutput != nil {
		var b bytes.Buffer
		if json.Indent(&b, t.StructuredOutput, "", "  ") == nil {
			said = "```json\n" + b.String() + "\n```"
		}
	}
	if said == "" {
		said = "Your request was completed. There is no answer in words."
	}
	if t.IncompleteReason == store.ReasonBudget {
		said += "\n\n---\n\nThis answer is not complete: the limit of " + t.IncompleteLimit + " for one request was reached."
	}
	return said
}

// split parts files into those that are attached and those that are too large.
func (c *composer) split(files []store.File) (attached, linked []store.File) {
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

func (c *composer) links(files []store.File) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nFiles too large for a mail:\n\n")
	for _, f := range files {
		name := strings.NewReplacer("[", "(", "]", ")", "\n", " ").Replace(f.Path)
		fmt.Fprintf(&b, "- [%s](%s)\n", name, c.runner.FileURL(f))
	}
	return b.String()
}

// write writes the whole mail.
func (c *composer) write(w io.Writer, h mail.Header, markdown string, files []store.File) error {
	if len(files) == 0 {
		iw, err := mail.CreateInlineWriter(w, h)
		if err != nil {
			return err
		}
		return c.writeTexts(iw, markdown)
	}
	mw, err := mail.CreateWriter(w, h)
	if err != nil {
		return err
	}
	iw, err := mw.CreateInline()
	if err != nil {
		return err
	}
	if err := c.writeTexts(iw, markdown); err != nil {
		return err
	}
	for _, f := range files {
		if err := c.attach(mw, f); err != nil {
			return err
		}
	}
	return mw.Close()
}

// writeTexts writes the answer as text and as HTML.
func (c *composer) writeTexts(iw *mail.InlineWriter, markdown string) error {
	page, err := c.html(markdown)
	if err != nil {
		return err
	}
	for _, form := range []struct{ kind, body string }{{"text/plain", markdown + "\n"}, {"text/html", page}} {
		var h mail.InlineHeader
		h.SetContentType(form.kind, map[string]string{"charset": "utf-8"})
		h.Set("Content-Transfer-Encoding", "quoted-printable")
		p, err := iw.CreatePart(h)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(p, strings.ReplaceAll(form.body, "\n", "\r\n")); err != nil {
			return err
		}
		if err := p.Close(); err != nil {
			return err
		}
	}
	return iw.Close()
}

func (c *composer) attach(mw *mail.Writer, f store.File) error {
	blob, err := c.store.OpenBlob(f.SHA256)
	if err != nil {
		return err
	}
	defer blob.Close()
	name := f.Path[strings.LastIndexByte(f.Path, '/')+1:]
	var h mail.AttachmentHeader
	h.Set("Content-Type", f.MediaType)
	if strings.HasPrefix(f.MediaType, "message/") || strings.HasPrefix(f.MediaType, "multipart/") {
		h.Set("Content-Type", "application/octet-stream") // others may not be encoded (RFC 2046, section 5.2.1)
	}
	h.Set("Content-Disposition", dispositionOf(name))
	h.Set("Content-Transfer-Encoding", "base64")
	p, err := mw.CreateAttachment(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(p, blob); err != nil {
		return err
	}
	return p.Close()
}

// dispositionOf names an attachment, by RFC 2231 where it must.
func dispositionOf(name string) string {
	plain := strings.IndexFunc(name, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) < 0
	if plain {
		return `attachment; filename="` + name + `"`
	}
	return "attachment; filename*=utf-8''" + strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}
