package dashboard

import (
	"encoding/json"
	"fmt"
	"html/template"
	"path"
	"strconv"
	"strings"
	"time"

	"journeyman/runner"
	"journeyman/store"
)

// What is shown of the pieces of a turn, at most, in bytes as they are sent. The
// rest is a link away.
const (
	inputBytes     = 2 << 10
	answerBytes    = 12 << 10
	structureBytes = 5 << 10
	reasoningBytes = 2 << 10
	textBytes      = 3 << 10
	callBytes      = 2 << 10 // each of a call's input and output
	summaryBytes   = 1 << 10
	filesOfTurn    = 20
	sourcesOfTurn  = 20
	stepsOfTurn    = 12 // on the page of a task
	stepsOnPage    = 20 // on the page of a turn
	frameOfTurn    = 2 << 10
	frameOfStep    = 400
	frameOfCall    = 500
	shownByDefault = 24 // bytes that a piece always gets
)

// A turnBlock is a turn as pages show it.
type turnBlock struct {
	store.Turn
	Path       string // address of its own page
	By         string // name of who sent it; '' for a stranger's mail
	Asked      excerpt
	Attached   []fileLink
	Steps      []stepBlock
	Earlier    int64         // steps before those shown
	Answer     template.HTML // '' where there is none, or it stands in a step
	AnswerCut  string        // address of the whole answer; '' where all is shown
	Structured *excerpt
	Files      []fileLink
	MoreFiles  int
	Sources    []store.Source
	MoreSource int
	Trouble    string // why it failed or was cut short; '' where it did not
	Plot       *plot  // nil where nothing has worked
}

// Credits are what the turn has cost.
func (b turnBlock) Credits() float64 { return store.Credits(b.Usage.Cost()) }

// Ended reports whether the turn has.
func (b turnBlock) Ended() bool { return b.Status.Ended() }

// Number is the turn's number for people, who count from one.
func (b turnBlock) Number() int64 { return b.Seq + 1 }

// A fileLink is a file that can be fetched.
type fileLink struct {
	Name, URL, MediaType string
	Size                 int64
}

// maxPicture is how large a picture is shown beside its name, at most, in bytes.
const maxPicture = 2 << 20

// Picture reports whether browsers show the file as a picture that cannot act.
func (f fileLink) Picture() bool {
	switch f.MediaType {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return f.Size <= maxPicture
	}
	return false
}

// blocks makes blocks of turns for one page, as long as there is room in it.
type blocks struct {
	d           *Dashboard
	r           *request
	task        store.Task
	path        string
	left        int // bytes of the page
	names       map[string]string
	compactions []store.Compaction
	asked       bool // compactions have been read
}

// take cuts a text to at most so many bytes, and to what is left of the page.
func (b *blocks) take(text string, most int, more string) excerpt {
	e := excerptOf(text, max(min(most, b.left), shownByDefault))
	if e.cut {
		e.More = more
	}
	b.left -= escapedSize(e.Text)
	return e
}

// turn makes the block of a turn for the page of its task: its newest steps alone.
func (b *blocks) turn(t store.Turn) (turnBlock, error) {
	block, err := b.turnFrom(t, max(0, t.Usage.Steps-stepsOfTurn), stepsOfTurn, false)
	if err == nil && len(block.Steps) > 0 {
		block.Earlier = block.Steps[0].Seq
	}
	return block, err
}

// turnFrom makes the block of a turn with its steps from one on. Where not all of
// these have room, it is the oldest or the newest that are shown.
func (b *blocks) turnFrom(t store.Turn, from int64, limit int, oldest bool) (turnBlock, error) {
	ctx := b.r.Context()
	block := turnBlock{Turn: t, Path: b.path + "/turns/" + strconv.FormatInt(t.Seq, 10)}
	b.left -= frameOfTurn
	raw := b.path + "/raw/" + strconv.FormatInt(t.Seq, 10)
	block.Asked = b.take(t.Input, inputBytes, raw+"/input")
	var err error
	if block.By, err = b.name(t.CreatedByUserID); err != nil {
		return block, err
	}
	if err := b.fillFiles(&block); err != nil {
		return block, err
	}
	if t.Status.Ended() {
		b.fillAnswer(&block, raw)
	}
	steps, err := b.d.store.JournalPage(ctx, t.Num, from, limit)
	if err != nil {
		return block, err
	}
	if err := b.fillSteps(&block, steps, oldest); err != nil {
		return block, err
	}
	spans, err := b.d.store.Spans(ctx, t.Num)
	if err != nil {
		return block, err
	}
	if p := plotOf(spans); p != nil && p.Model+p.Tools > 0 {
		b.left -= p.size()
		block.Plot = p
	}
	block.Trouble = trouble(t)
	return block, nil
}

// name gives the name of a user, once read for all blocks.
func (b *blocks) name(userID string) (string, error) {
	if userID == "" {
		return "", nil
	}
	if name, ok := b.names[userID]; ok {
		return name, nil
	}
	name, err := b.d.store.UserName(b.r.Context(), userID)
	if b.names == nil {
		b.names = map[string]string{}
	}
	b.names[userID] = name
	return name, err
}

func (b *blocks) fillFiles(block *turnBlock) error {
	files, err := b.d.store.FilesByTurn(b.r.Context(), block.Num)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Origin == store.Attached && len(block.Attached) < filesOfTurn {
			block.Attached = append(block.Attached, b.file(f))
		}
	}
	published := runner.TurnFiles(files, block.Num)
	for i, f := range published {
		if i == filesOfTurn {
			block.MoreFiles = len(published) - i
			break
		}
		block.Files = append(block.Files, b.file(f))
	}
	sources, err := b.d.store.SourcesByTurn(b.r.Context(), block.Num)
	block.MoreSource = max(0, len(sources)-sourcesOfTurn)
	block.Sources = sources[:min(len(sources), sourcesOfTurn)]
	for _, s := range block.Sources {
		b.left -= 100 + escapedSize(s.Title) + 2*escapedSize(s.URL)
	}
	return err
}

// file gives the link of a file. Its address lacks the base: a page is where it is.
func (b *blocks) file(f store.File) fileLink {
	link := fileLink{Name: path.Base(f.Path), URL: strings.TrimPrefix(b.d.cfg.Runner.FileURL(f), b.d.cfg.BaseURL), MediaType: f.MediaType, Size: f.Size}
	b.left -= 100 + escapedSize(link.Name) + len(link.URL)
	return link
}

// fillAnswer adds what the turn has answered. An answer that is the structured
// output's own text is not shown twice.
func (b *blocks) fillAnswer(block *turnBlock, raw string) {
	if block.StructuredOutput != nil {
		e := b.take(prettyJSON(block.StructuredOutput), structureBytes, raw+"/structured")
		block.Structured = &e
		if json.Valid([]byte(strings.TrimSpace(block.OutputText))) {
			return
		}
	}
	if block.OutputText == "" || block.Status != store.Completed { // what it said before it ended so stands in its steps
		return
	}
	e := excerptOf(block.OutputText, max(min(answerBytes, b.left), shownByDefault))
	if block.Answer = showMarkdown(e.Text); len(block.Answer) > 2*answerBytes { // Markdown that swells
		block.Answer = template.HTML("<pre>" + template.HTMLEscapeString(e.Text) + "</pre>") //nolint:gosec // escaped
	}
	if e.cut {
		block.AnswerCut = raw + "/output"
	}
	b.left -= len(block.Answer)
}

// trouble says in words why a turn ended as nobody wished.
func trouble(t store.Turn) string {
	switch {
	case t.Status == store.Aborted:
		return "What it had done until then is kept."
	case t.Failure != nil:
		text := sentence(t.Failure.Message)
		if text == "" {
			text = "The turn failed."
		}
		if t.Failure.Retryable {
			text += " Trying again may help."
		}
		return text
	case t.IncompleteReason == store.ReasonBudget:
		what := map[string]string{"credits": "its credits", "steps": "its model calls", "time": "its time"}[t.IncompleteLimit]
		if what == "" {
			what = "it"
		}
		return fmt.Sprintf("The answer is not complete: the budget %q has used up %s. A follow-up with a larger budget goes on from here.", t.Budget, what)
	}
	return ""
}

// compacted gives what was left out of the conversation before a step of a turn, in
// words.
func (b *blocks) compacted(turnNum, step int64) (notes []note, err error) {
	if !b.asked {
		b.asked = true
		if b.compactions, err = b.d.store.Compactions(b.r.Context(), b.task.Num); err != nil {
			return nil, err
		}
	}
	for _, c := range b.compactions {
		if c.TurnNum == turnNum && c.Step == step {
			notes = append(notes, note{compactionText(c), b.take(c.Summary, summaryBytes, "")})
		}
	}
	return notes, nil
}

// A note says what the runner did to a conversation.
type note struct {
	Text    string
	Summary excerpt // what is told in the place of what was left out
}

func compactionText(c store.Compaction) string {
	var what string
	switch c.Kind {
	case store.CompactionCut:
		what = fmt.Sprintf("%s of tools were cut to %s each", plural(int(c.Items), "long text"), showBytes(c.CutTo))
	case store.CompactionFiles:
		what = plural(int(c.Items), "attached file") + " will only be named"
	case store.CompactionSummary:
		what = plural(int(c.Items), "earlier model call") + " were summarised"
	case store.CompactionOmission:
		what = plural(int(c.Items), "earlier model call") + " were left out"
	default:
		what = "a part was told shorter"
	}
	why := fmt.Sprintf("so that the conversation fits %s", c.Model)
	if c.Refused {
		why = fmt.Sprintf("because %s found the conversation too long", c.Model)
	}
	return fmt.Sprintf("%s, %s: about %s tokens became %s.", sentence(what)[:len(sentence(what))-1], why, showCount(c.TokensBefore), showCount(c.TokensAfter))
}

// took is how long something that has a beginning and an end took.
func took(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }
