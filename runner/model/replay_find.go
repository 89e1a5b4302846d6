package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A recordedPlace is the position of a recorded call in its run.
type recordedPlace struct {
	Thread  string `json:"thread"` // names the task and its worker, without their ids
	Turn    int64  `json:"turn"`
	Step    int64  `json:"step"`
	Summary bool   `json:"summary,omitempty"`
	Session int64  `json:"session"` // when the recording program was started, in Unix microseconds
	At      int64  `json:"at"`      // when the answer came, in Unix microseconds
}

// session is when this program was started. The recordings of a later session replace
// those of earlier ones.
var session = time.Now().UnixMicro()

// placeOf returns the place of a call that is recorded now, nil for a call outside of turns.
func placeOf(p Place) *recordedPlace {
	if p.Task == "" {
		return nil
	}
	return &recordedPlace{Thread: threadOf(p), Turn: p.Turn, Step: p.Step, Summary: p.Summary,
		Session: session, At: time.Now().UnixMicro()}
}

// threadOf returns the name of a task in recordings.
func threadOf(p Place) string {
	sum := sha256.Sum256([]byte(p.Worker + "\x00" + p.Task))
	return hex.EncodeToString(sum[:6])
}

// placePrefix returns how the names of recordings of a place begin.
func placePrefix(p Place) string {
	kind := "step"
	if p.Summary {
		kind = "summary"
	}
	return fmt.Sprintf("turn%04d-%s%04d-", p.Turn, kind, p.Step)
}

// recordingName returns the name of the file for a recording.
func recordingName(p Place, key string) string {
	if p.Task == "" {
		return key + ".json"
	}
	return placePrefix(p) + threadOf(p) + "-" + key + ".json"
}

// A recordings is a folder of recordings that is being replayed. It is safe for concurrent
// use.
type recordings struct {
	dir string

	mu      sync.Mutex         // guards the maps below
	outline map[string]outline // of files that have been read
	threads map[string]string  // recorded thread by the thread of this run that it answers
	claimed map[string]bool    // recorded threads in threads
}

// An outline holds the parts of a recording that are compared. Whole conversations would
// need too much memory.
type outline struct {
	name     string
	place    recordedPlace
	changed  time.Time
	shape    string   // the labels of all lines
	question []string // the worker's instructions and what users wrote
	answers  []uint64 // hashes of what the model said and called
	results  []uint64 // hashes of what tools returned
	faulty   bool     // the file cannot be read as a recording
}

const (
	leastSimilar = 0.5 // a recording whose question is less similar answers another question
	maxOutlines  = 20_000
	maxThreads   = 10_000
)

// A match is a recording that answers a request.
type match struct {
	name    string
	warning string // how the request differs, "" where it hardly does
}

// find returns the recording for a request: the best one of the same place, if any is
// similar enough. Dates and the output of tools may differ from run to run, so an equal
// request is not needed. Only then does find look among the recordings without a place.
func (r *recordings) find(asked digest, p Place) (m match, ok bool) {
	names := r.list()
	own := newOutline(asked.lines)
	var best outline
	if p.Task != "" {
		// The prefix is part of the names, so files of other places are not even opened.
		prefix := placePrefix(p)
		atPlace := func(o outline) bool { return strings.HasPrefix(o.name, prefix) }
		if best, ok = r.best(own, asked.key(), threadOf(p), names, atPlace); ok {
			return match{best.name, own.differs(best)}, true
		}
	}
	// Calls outside of turns have no place. Nor have the recordings of earlier versions.
	name := asked.key() + ".json"
	if _, found := slices.BinarySearch(names, name); found {
		return match{name: name}, true
	}
	if p.Task != "" {
		ofShape := func(o outline) bool { return oldName.MatchString(o.name) && o.shape == own.shape }
		best, ok = r.best(own, asked.key(), threadOf(p), names, ofShape)
	}
	return match{best.name, own.differs(best)}, ok
}

// oldName matches the names of recordings without a place.
var oldName = regexp.MustCompile(`^[0-9a-f]{32}\.json$`)

// list returns the names of the files in the folder, sorted.
func (r *recordings) list() []string {
	entries, _ := os.ReadDir(r.dir) // what cannot be read answers nothing
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// best returns the best of the recordings that fit, and binds its thread to this run's.
func (r *recordings) best(own outline, key, thread string, names []string, fits func(outline) bool) (
	best outline, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var top rank
	for _, name := range names {
		// The name decides without a look into the file, unless the file has no place.
		if !fits(outline{name: name, shape: own.shape}) {
			continue
		}
		o := r.read(name)
		if o.faulty || !fits(o) {
			continue
		}
		rank := r.rank(own, o, key, thread)
		if rank.similar >= leastSimilar && (!ok || rank.compare(top) > 0) {
			best, top, ok = o, rank, true
		}
	}
	if ok && best.place.Thread != "" {
		// Forgetting the threads only makes matches worse, but their number must have a limit.
		if len(r.threads) >= maxThreads || r.threads == nil {
			r.threads, r.claimed = map[string]string{}, map[string]bool{}
		}
		// Later calls of this task prefer the same recorded task, even if others began alike.
		r.threads[thread], r.claimed[best.place.Thread] = best.place.Thread, true
	}
	return best, ok
}

// A rank orders the recordings for a request. Its fields stand in the order of their
// weight.
type rank struct {
	similar float64 // how much of the question is the same
	answers int     // answers of the model that are the same: they come from the same recording
	bound   bool    // the recording belongs to the thread that answered this task before
	results int     // outputs of tools that are the same
	exact   bool    // the very request
	session int64   // a newer recording replaces an older one
	free    bool    // no other task has been answered by this thread
	at      int64   // the first one recorded goes to the first task
}

// compare returns a positive number if a is the better rank.
func (a rank) compare(b rank) int {
	return cmp.Or(cmp.Compare(a.similar, b.similar), a.answers-b.answers, truth(a.bound)-truth(b.bound),
		a.results-b.results, truth(a.exact)-truth(b.exact), cmp.Compare(a.session, b.session),
		truth(a.free)-truth(b.free), cmp.Compare(b.at, a.at))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// rank returns the rank of a recording for a request of a thread. The caller holds r.mu.
func (r *recordings) rank(own, o outline, key, thread string) rank {
	bound := r.threads[thread] != "" && r.threads[thread] == o.place.Thread
	return rank{similar: similarTexts(own.question, o.question), answers: equalLines(own.answers, o.answers), bound: bound,
		results: equalLines(own.results, o.results), exact: strings.Contains(o.name, key), session: o.place.Session,
		free: bound || !r.claimed[o.place.Thread], at: o.place.At}
}

// read returns the outline of a file. The caller holds r.mu.
func (r *recordings) read(name string) outline {
	path := filepath.Join(r.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return outline{name: name, faulty: true}
	}
	// A file that was recorded again has a new time.
	if o, ok := r.outline[name]; ok && o.changed.Equal(info.ModTime()) {
		return o
	}
	o := outline{faulty: true}
	if rec, err := readRecording(path); err == nil {
		if o = newOutline(rec.Request); rec.Place != nil {
			o.place = *rec.Place
		}
	}
	o.name, o.changed = name, info.ModTime()
	// An outline that was dropped is read again when it is needed.
	if len(r.outline) >= maxOutlines || r.outline == nil {
		r.outline = map[string]outline{}
	}
	r.outline[name] = o
	return o
}

// newOutline returns the outline of a digest.
func newOutline(lines []string) outline {
	var o outline
	var labels strings.Builder
	for _, line := range lines {
		label, text, _ := strings.Cut(line, ": ")
		switch label {
		case "error":
			label = "result" // a command may fail in one run and not in another
			fallthrough
		case "result":
			o.results = append(o.results, hashLine(text))
		case "assistant", "call":
			o.answers = append(o.answers, hashLine(line))
		default:
			o.question = append(o.question, line)
		}
		labels.WriteString(label + " ")
	}
	o.shape = labels.String()
	return o
}

func hashLine(line string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(line)) // never fails
	return h.Sum64()
}

// differs returns a warning for the operator about how a request differs from a recording.
// It returns "" for small differences. The text holds none of the content.
func (o outline) differs(rec outline) string {
	similar := similarTexts(o.question, rec.question)
	same := equalLines(o.results, rec.results)
	switch {
	case rec.name == "":
		return ""
	// Only the most serious difference is reported.
	case similar < 1:
		return fmt.Sprintf("recording %s answers, but %.0f %% of the instructions and messages differ from it",
			rec.name, max((1-similar)*100, 1))
	case o.shape != rec.shape || equalLines(o.answers, rec.answers) < len(o.answers):
		return fmt.Sprintf("recording %s answers, but the turn has taken another course before", rec.name)
	case len(o.results) > 1 && same*2 < len(o.results):
		return fmt.Sprintf("recording %s answers, but %d of %d outputs of tools differ from it",
			rec.name, len(o.results)-same, len(o.results))
	}
	return ""
}

// equalLines returns how many lines at the same place are equal.
func equalLines(a, b []uint64) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// similarTexts returns how similar two lists of lines are, from 0 to 1: the share of their
// words that both have. The first line holds the worker's instructions. If it differs more than
// the whole, it decides alone, because another worker has no answers for this one.
func similarTexts(a, b []string) float64 {
	if slices.Equal(a, b) {
		return 1
	}
	whole := similarWords(strings.Join(a, "\n"), strings.Join(b, "\n"))
	if len(a) > 0 && len(b) > 0 && a[0] != b[0] {
		whole = min(whole, similarWords(a[0], b[0]))
	}
	return min(whole, 0.999) // equal words in another order are not the same text
}

// similarWords returns the share of the words that two texts have in common.
func similarWords(a, b string) float64 {
	left := map[string]int{}
	total := 0
	for word := range strings.FieldsSeq(a) {
		left[word]++
		total++
	}
	common := 0
	for word := range strings.FieldsSeq(b) {
		if total++; left[word] > 0 {
			left[word]--
			common++
		}
	}
	if total == 0 {
		return 1
	}
	// This is the Sørensen-Dice coefficient, with repeated words counted as often as they come.
	return 2 * float64(common) / float64(total)
}
