package task

import (
	"cmp"
	"strings"

	"journeyman/handlers/dashboard/show"
	"journeyman/runner/stream"
	"journeyman/runner/view"
	"journeyman/store"
)

// A railNow is the section about the current activity of a task in its rail, the column beside the conversation. The
// rail shows facts that are not in the conversation, and each of its sections is a piece.
type railNow struct {
	activity
	Budget        store.Budget
	Limit         float64 // of credits; 0 without one
	Shared        bool    // other workers use the budget, too
	Percent       int
	Input, Output int64
}

// Dollars returns the cost in dollars. A credit is a cent.
func (n railNow) Dollars() float64 { return n.Credits / 100 }

// newRailNow returns the figures of a turn.
func (b *turnBuilder) newRailNow(s stream.State, a activity) railNow {
	u := usageOf(s)
	n := railNow{activity: a, Budget: s.Turn.Budget, Limit: b.d.Runner.Limits(s.Turn.Budget).Credits,
		Input: u.InputTokens, Output: u.OutputTokens, Shared: b.shares(s.Turn)}
	if n.Limit > 0 {
		n.Percent = min(100, int(100*n.Credits/n.Limit))
	}
	return n
}

// A railPlan is the newest plan of the worker.
type railPlan struct {
	Items []planItem
	Done  int
}

// planIn returns the newest plan in steps.
func planIn(steps []store.Step) (p railPlan) {
	for i := len(steps) - 1; i >= 0 && len(p.Items) == 0; i-- {
		for _, c := range steps[i].ToolCalls() {
			if c.ToolName == "update_plan" {
				p.Items = planOf(show.ArgumentsOf(c.Input)["items"])
			}
		}
	}
	p.Done = doneOf(p.Items)
	return p
}

// The limits of lists in the rail.
const (
	railFiles   = 8
	railSources = 6
)

// A railFileList holds the files of a task that the rail shows.
type railFileList struct {
	Files []fileLink
	More  int
	All   string // address of all files of the worker
	Zip   string // address of the task's files as one archive; "" for a single file
}

// filesOfTask returns the newest version of each file that the task has published.
func (b *turnBuilder) filesOfTask() (list railFileList, err error) {
	files, err := b.d.Store.FilesByTask(b.r.Context(), b.task)
	files = store.PublishedFiles(files)
	list.More = max(0, len(files)-railFiles)
	list.All = "/workers/" + b.task.WorkerID + "/files"
	if len(files) > 1 {
		list.Zip = view.TaskPath(b.task.ID) + "/files.zip"
	}
	for _, f := range files[list.More:] {
		list.Files = append(list.Files, b.file(f))
	}
	return list, err
}

// A railSource is a page that the worker has used.
type railSource struct{ URL, Title, Host string }

// A railSourceList is the sources of a turn.
type railSourceList struct {
	Sources []railSource
	More    int
}

// sourcesOf returns the sources of a turn.
func (b *turnBuilder) sourcesOf(t store.Turn) (list railSourceList, err error) {
	sources, err := b.d.Store.SourcesByTurn(b.r.Context(), t)
	list.More = max(0, len(sources)-railSources)
	for _, s := range sources[:min(len(sources), railSources)] {
		host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(s.URL, "https://"), "http://"), "/")
		list.Sources = append(list.Sources,
			railSource{webAddress(s.URL), show.Ellipsis(cmp.Or(s.Title, s.URL), 90), show.Ellipsis(host, 40)})
	}
	return list, err
}

// A railAbout shows the origin of a task.
type railAbout struct {
	*taskPage
	Turn store.Turn // the newest
}

// rail returns the sections of the rail. s is the newest turn that has started.
func (b *turnBuilder) rail(p *taskPage, s stream.State, a activity) (list []piece, err error) {
	m := pieceMaker{b: b, root: "rail"}
	files, err := b.filesOfTask()
	if err != nil {
		return nil, err
	}
	sources, err := b.sourcesOf(s.Turn)
	if err != nil {
		return nil, err
	}
	spans, err := b.d.Store.Spans(b.r.Context(), s.Turn)
	if err != nil {
		return nil, err
	}
	plan := planIn(s.Steps)
	for i := range plan.Items {
		if s.Turn.Status.Ended() && plan.Items[i].Class() == "now" { // an ended turn works on no item
			plan.Items[i].State = "pending"
		}
	}
	for _, section := range []struct {
		id    string
		shown bool
		data  any
	}{
		{"now", s.Turn.StartedAt != nil, b.newRailNow(s, a)},
		{"plan", len(plan.Items) > 0, plan},
		{"files", len(files.Files) > 0, files},
		{"sources", len(sources.Sources) > 0, sources},
		{"timeline", len(spans) > 0, show.NewTimeline(b.r.Lang, spans)},
		{"about", true, railAbout{p, s.Turn}},
	} {
		if !section.shown {
			continue
		}
		if err := m.own(section.id, "rail-"+section.id, section.data); err != nil {
			return nil, err
		}
	}
	return m.list, nil
}
