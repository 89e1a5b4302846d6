package task

import (
	"cmp"
	"encoding/json"
	"html/template"
	"path"
	"slices"
	"strconv"
	"strings"

	"journeyman/handlers/dashboard/frame"
	"journeyman/handlers/dashboard/show"
	"journeyman/handlers/dashboard/text"
	"journeyman/store"
	"journeyman/store/db"
)

// The limits of each part of a turn on a page. Texts are measured in bytes of HTML. The page links
// to the rest of a text.
const (
	inputBytes     = 2 << 10
	answerBytes    = 12 << 10
	structureBytes = 5 << 10
	reasoningBytes = 2 << 10
	textBytes      = 3 << 10
	callBytes      = 2 << 10 // of a call's input, and of its output
	summaryBytes   = 1 << 10
	filesOfTurn    = 20
	stepsOfTurn    = 12 // on the page of a task
	stepsOnPage    = 20 // on the page of a turn
	stepPartsShown = 40 // texts and calls of steps on a page; the last step may exceed it
	bodiesOfStep   = 12 // calls with their content; further calls link to their own pages
)

// A turnBlock is a turn for a page.
type turnBlock struct {
	store.Turn
	Path        string // address of its own page
	TaskPath    string
	By          string // name of the user who sent it, or else the address in its mail
	Instruction show.Excerpt
	Attached    []fileLink
	Shown       []store.Step  // the steps that the page shows
	Steps       []piece       // the shown steps, drawn
	Earlier     int64         // number of steps before those shown
	Asks        []piece       // waiting calls
	Answer      template.HTML // "" without one, or if a step shows it
	AnswerCut   string        // address of the complete answer; "" if Answer is complete
	Structured  *show.Excerpt
	Files       []fileLink
	MoreFiles   int
	Problem     string // why the turn failed or is incomplete; "" if neither
	Again       string // token of the forms that run it again; "" if the task accepts no turns
	Unfold      bool   // the steps are unfolded
	End         show.State
	lang        *text.Language
}

// ReplyID returns the id of the element with the worker's answer.
func (b turnBlock) ReplyID() string { return "reply-" + strconv.FormatInt(b.Seq, 10) }

// FlowID returns the id of the element with the pieces of a turn that has not ended.
func (b turnBlock) FlowID() string { return "flow-" + strconv.FormatInt(b.Seq, 10) }

// BoxID returns the id of the element with the whole turn.
func (b turnBlock) BoxID() string { return "box-" + strconv.FormatInt(b.Seq, 10) }

// Raw returns the address of the turn's texts, without its last part.
func (b turnBlock) Raw() string { return b.TaskPath + "/raw/" + strconv.FormatInt(b.Seq, 10) }

// Drawn returns the pieces of the turn as one text.
func (b turnBlock) Drawn() template.HTML { return assemble(b.Steps) }

// DrawnAsks returns the waiting calls as one text.
func (b turnBlock) DrawnAsks() template.HTML { return assemble(b.Asks) }

// Credits returns the cost of the turn.
func (b turnBlock) Credits() float64 { return db.Credits(b.Usage.Cost()) }

// Ended reports whether the turn has ended.
func (b turnBlock) Ended() bool { return b.Status.Ended() }

// Failed reports whether the turn failed, so that trying again may help.
func (b turnBlock) Failed() bool { return b.Status == store.Failed || b.Status == store.Aborted }

// Long reports whether the instruction is folded.
func (b turnBlock) Long() bool {
	return b.Instruction.Size > foldedBytes || strings.Count(b.Instruction.Text, "\n") > foldedLines
}

// Beginning returns the first lines of a long instruction.
func (b turnBlock) Beginning() string {
	lines := strings.SplitN(strings.TrimSpace(b.Instruction.Text), "\n", 4)
	return show.Ellipsis(strings.Join(lines[:min(len(lines), 3)], "\n"), 240)
}

// StepsLine returns a summary of the folded steps, in one line.
func (b turnBlock) StepsLine() string {
	parts := []string{b.lang.N(b.Usage.Steps, "%d step", "%d steps"), show.Duration(b.lang, b.Duration)}
	var tools []string
	for _, st := range b.Shown {
		for _, c := range st.ToolCalls() {
			if name := show.Ellipsis(c.ToolName, 40); !slices.Contains(tools, name) {
				tools = append(tools, name)
			}
		}
	}
	if len(tools) > 0 {
		more := ""
		if len(tools) > 4 {
			tools, more = tools[:4], " …"
		}
		parts = append(parts, strings.Join(tools, ", ")+more)
	}
	return strings.Join(parts, " · ")
}

// Number returns the turn's number for people, counted from one.
func (b turnBlock) Number() int64 { return b.Seq + 1 }

// The instruction of a turn is folded beyond these limits.
const (
	foldedBytes = 900
	foldedLines = 12
)

// A fileLink is a file with its address.
type fileLink struct {
	Name, URL, MediaType string
	Size                 int64
}

// maxPicture is the size of the largest picture that a page shows, in bytes.
const maxPicture = 2 << 20

// Picture reports whether the page shows the file as a picture. The types are those that
// cannot run scripts.
func (f fileLink) Picture() bool {
	switch f.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return f.Size <= maxPicture
	}
	return false
}

// A turnBuilder creates the turns of one page. Every text has its own limit and a link to the
// complete text.
type turnBuilder struct {
	d           *Pages
	r           *frame.Request
	task        store.Task
	path        string
	parts       int  // of steps that the page has
	again       bool // the task accepts new turns
	children    []store.Child
	names       map[string]string
	compactions []store.Compaction
	read        bool // compactions were read
}

// prose returns the renderer of Markdown in the language of the page.
func (b *turnBuilder) prose() show.Prose { return show.Prose{Language: b.r.Lang} }

// turn returns the block of a turn for the page of its task, with its newest steps.
func (b *turnBuilder) turn(t store.Turn) (turnBlock, error) {
	return b.withSteps(t, max(0, t.Usage.Steps-stepsOfTurn), stepsOfTurn, stepOrder{limit: textBytes})
}

// turnFrom returns the block of a turn for its own page, with its steps from one on.
func (b *turnBuilder) turnFrom(t store.Turn, from int64) (turnBlock, error) {
	return b.withSteps(t, from, stepsOnPage, stepOrder{oldest: true, limit: textBytes})
}

// withSteps returns the block of a turn with at most n steps from one on.
func (b *turnBuilder) withSteps(t store.Turn, from int64, n int, o stepOrder) (turnBlock, error) {
	block, err := b.frame(t)
	if err != nil {
		return block, err
	}
	steps, err := b.d.Store.JournalPage(b.r.Context(), t, from, n)
	if err != nil {
		return block, err
	}
	return block, b.addSteps(&block, steps, o)
}

// frame returns the block of a turn without its steps.
func (b *turnBuilder) frame(t store.Turn) (block turnBlock, err error) {
	seq := strconv.FormatInt(t.Seq, 10)
	raw := b.path + "/raw/" + seq
	block = turnBlock{Turn: t, Path: b.path + "/turns/" + seq, TaskPath: b.path, lang: b.r.Lang,
		Problem: problemText(b.r.Lang, t, b.shares(t)), Instruction: show.ExcerptOf(t.Input, inputBytes).At(raw + "/input"),
		End: statusOf(b.r.Lang, t.Status, t.Wait, false)}
	if b.again {
		block.Again = b.d.Token()
	}
	if t.Status == store.Pending && !t.Ready {
		m := pieceMaker{b: b, root: block.FlowID()}
		if err := m.own("queued-"+seq, "queued", block); err != nil {
			return block, err
		}
		block.Steps = m.list
	}
	if block.By, err = b.name(t.CreatedByUserID); err == nil && block.By == "" {
		block.By, err = b.d.sender(b.r, t)
	}
	if err != nil {
		return block, err
	}
	if err := b.addFiles(&block); err != nil {
		return block, err
	}
	if t.Status.Ended() {
		b.addAnswer(&block, raw)
	}
	return block, nil
}

// name returns the name of a user. It reads each name once.
func (b *turnBuilder) name(userID string) (string, error) {
	if userID == "" {
		return "", nil
	}
	if b.names == nil {
		b.names = map[string]string{}
	}
	return frame.Once(b.names, userID, func() (string, error) { return b.d.Store.People.UserName(b.r.Context(), userID) })
}

// addFiles adds the files of the turn, as many as a page shows.
func (b *turnBuilder) addFiles(block *turnBlock) error {
	files, err := b.d.Store.FilesByTurn(b.r.Context(), block.Turn)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Origin == store.Attached && len(block.Attached) < filesOfTurn {
			block.Attached = append(block.Attached, b.file(f))
		}
	}
	// TurnFiles leaves only the newest version of a path.
	published := store.TurnFiles(files, block.Num, store.Published)
	for i, f := range published {
		if i == filesOfTurn {
			block.MoreFiles = len(published) - i
			break
		}
		block.Files = append(block.Files, b.file(f))
	}
	return nil
}

// file returns the link of a file. The link has no host, so that it works under each name of this
// server.
func (b *turnBuilder) file(f store.File) fileLink {
	return fileLink{Name: path.Base(f.Path), URL: strings.TrimPrefix(b.d.Runner.FileURL(f), b.d.BaseURL),
		MediaType: f.MediaType, Size: f.Size}
}

// addAnswer adds the turn's answer and structured output. It leaves out an answer that is
// the JSON of the structured output.
func (b *turnBuilder) addAnswer(block *turnBlock, raw string) {
	if block.StructuredOutput != nil {
		e := show.ExcerptOf(show.JSON(block.StructuredOutput), structureBytes).At(raw + "/structured")
		block.Structured = &e
		if json.Valid([]byte(strings.TrimSpace(block.OutputText))) {
			return
		}
	}
	if block.OutputText == "" || block.Status != store.Completed {
		return // the steps show the texts of a turn that did not complete
	}
	e := show.ExcerptOf(block.OutputText, answerBytes).At(raw + "/output")
	block.Answer, block.AnswerCut = b.prose().HTML(e.Text), e.More
	if len(block.Answer) > 2*answerBytes { // HTML far larger than its Markdown would fill the page
		block.Answer = show.Preformatted(e.Text)
	}
}

// shares reports whether a turn shares its budget with turns of other workers.
func (b *turnBuilder) shares(t store.Turn) bool {
	return t.Depth > 0 || slices.ContainsFunc(b.children, func(c store.Child) bool { return c.ParentNum == t.Num })
}

// problemText returns the reason why a turn did not complete its work. shared means that the turn shares its budget.
func problemText(l *text.Language, t store.Turn, shared bool) string {
	switch {
	case t.Status == store.Aborted:
		return l.T("Its results so far are kept.")
	case t.Failure != nil:
		why := cmp.Or(show.Sentence(frame.Explained(l, t.Failure.Code, t.Failure.Message)), l.T("The turn failed."))
		if t.Failure.Retryable {
			why += " " + l.T("Trying again may help.")
		}
		return why
	case t.IncompleteReason == store.ReasonBudget:
		return budgetText(l, t, shared)
	case t.IncompleteReason == store.ReasonMaxTokens:
		return l.T("The answer is not complete: it is longer than the model can write at once.") + " " +
			l.T("A follow-up continues from here.")
	case t.IncompleteReason == store.ReasonFilter:
		return l.T("The answer is not complete: the model's provider withheld a part of it.")
	}
	return ""
}

// budgetText names the limit of the budget that has ended a turn.
func budgetText(l *text.Language, t store.Turn, shared bool) string {
	what := l.T("The answer is not complete: the budget \"%s\" is used up.", t.Budget)
	switch t.IncompleteLimit {
	case "credits":
		what = l.T("The answer is not complete: the budget \"%s\" has used up its credits.", t.Budget)
	case "steps":
		what = l.T("The answer is not complete: the budget \"%s\" has used up its model calls.", t.Budget)
	case "time":
		what = l.T("The answer is not complete: the budget \"%s\" has used up its time.", t.Budget)
	}
	// Otherwise the figures of the turn seem to contradict the text.
	if shared && t.IncompleteLimit != "time" {
		what += " " + l.T("Other workers used it, too.")
	}
	return what + " " + l.T("A follow-up with a larger budget continues from here.")
}
