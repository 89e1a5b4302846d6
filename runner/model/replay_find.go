package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A recordedPlace is the position of a recorded call in its run.
type recordedPlace struct {
	Thread  string `json:"thread"` // identifies the task and its worker, without their ids
	Turn    int64  `json:"turn"`
	Step    int64  `json:"step"`
	Summary bool   `json:"summary,omitempty"`
	Session int64  `json:"session"` // start time of the recording program, in Unix microseconds
	At      int64  `json:"at"`      // time of the answer, in Unix microseconds
}

// session is the start time of this program. Recordings of a later session replace those of
// earlier ones.
var session = time.Now().UnixMicro()

// placeOf returns the place of a call for a recording, nil for a call outside of turns.
func placeOf(p Place) *recordedPlace {
	if p.Task == "" {
		return nil
	}
	return &recordedPlace{Thread: threadOf(p), Turn: p.Turn, Step: p.Step, Summary: p.Summary,
		Session: session, At: time.Now().UnixMicro()}
}

// threadOf returns the identifier of a task in recordings.
func threadOf(p Place) string {
	sum := sha256.Sum256([]byte(p.Worker + "\x00" + p.Task))
	return hex.EncodeToString(sum[:6])
}

// placePrefix returns the prefix of the names of recordings of a place.
func placePrefix(p Place) string {
	kind := "step"
	if p.Summary {
		kind = "summary"
	}
	return fmt.Sprintf("turn%04d-%s%04d-", p.Turn, kind, p.Step)
}

// recordingName returns the file name of a recording.
func recordingName(p Place, key string) string {
	if p.Task == "" {
		return key + ".json"
	}
	return placePrefix(p) + threadOf(p) + "-" + key + ".json"
}

// A recordings is a folder of recordings for a replay. It is safe for concurrent use.
type recordings struct {
	dir string

	mu      sync.Mutex         // guards the maps below
	outline map[string]outline // outlines of the files read so far, by file name
	threads map[string]string  // recorded thread by the thread of this run
	claimed map[string]bool    // values of threads
}

// An outline holds the parts of a recording that are compared. Complete conversations would
// need too much memory.
type outline struct {
	name     string
	place    recordedPlace
	changed  time.Time
	shape    string   // the labels of all lines
	question []string // the worker's instructions and the users' messages
	answers  []uint64 // hashes of the model's texts and calls
	results  []uint64 // hashes of tool results
	faulty   bool     // the file is not a valid recording
}

const (
	leastSimilar = 0.5 // a recording with a less similar question does not match
	maxOutlines  = 20_000
	maxThreads   = 10_000
)

// A match is a recording that answers a request.
type match struct {
	name    string
	warning string // how the request differs, "" if it hardly does
}

// find returns the recording for a request: the best recording of the same place that is
// similar enough. The request need not be equal, because dates and tool results may differ
// between runs. If there is none, find searches the recordings without a place.
func (r *recordings) find(asked digest, p Place) (m match, ok bool) {
	names := r.list()
	own := newOutline(asked.lines)
	var best outline
	if p.Task != "" {
		// File names contain the prefix, so files of other places are not opened.
		prefix := placePrefix(p)
		atPlace := func(o outline) bool { return strings.HasPrefix(o.name, prefix) }
		if best, ok = r.best(own, asked.key(), threadOf(p), names, atPlace); ok {
			return match{best.name, own.differs(best)}, true
		}
	}
	// Calls outside of turns have no place.
	name := asked.key() + ".json"
	_, ok = slices.BinarySearch(names, name)
	return match{name: name}, ok
}

// list returns the names of the files in the folder, sorted.
func (r *recordings) list() []string {
	entries, _ := os.ReadDir(r.dir) // unreadable entries answer no request
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names
}

// best returns the best of the recordings for which fits returns true, and binds its thread to
// the given one.
func (r *recordings) best(own outline, key, thread string, names []string, fits func(outline) bool) (
	best outline, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var top rank
	for _, name := range names {
		// Check the name first, without reading the file. Files without a place must be read.
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
		// Dropping the threads only makes matches worse, but their number must be limited.
		if len(r.threads) >= maxThreads || r.threads == nil {
			r.threads, r.claimed = map[string]string{}, map[string]bool{}
		}
		// Later calls of this task prefer the same recorded task, even if other tasks began in
		// the same way.
		r.threads[thread], r.claimed[best.place.Thread] = best.place.Thread, true
	}
	return best, ok
}

// A rank orders the recordings for a request. Its fields are sorted by their weight.
type rank struct {
	similar float64 // similarity of the questions
	answers int     // number of equal answers of the model, which indicate the same task
	bound   bool    // the recording belongs to the thread that is bound to this task
	results int     // number of equal tool results
	exact   bool    // the requests are equal
	session int64   // a newer recording replaces an older one
	free    bool    // the thread is not bound to another task
	at      int64   // the recording that was made first belongs to the first task
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
	// A file that was recorded again has a new modification time.
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
	// A dropped outline is read again when needed.
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
			label = "result" // a command may fail in one run and succeed in another
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
	_, _ = h.Write([]byte(line)) // never returns an error
	return h.Sum64()
}

// differs returns a warning for the operator about the differences of a request and a
// recording. It returns "" for small differences. The text contains no content.
func (o outline) differs(rec outline) string {
	similar := similarTexts(o.question, rec.question)
	same := equalLines(o.results, rec.results)
	switch {
	case rec.name == "":
		return ""
	// Report only the most serious difference.
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

// equalLines returns how many elements with the same index are equal.
func equalLines(a, b []uint64) (n int) {
	for i := range min(len(a), len(b)) {
		if a[i] == b[i] {
			n++
		}
	}
	return n
}

// similarTexts returns how similar two lists of lines are, from 0 to 1: the share of words that
// they have in common. The first line contains the worker's instructions. If it is less similar
// than the whole, only it counts, because the answers of another worker are not useful.
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

// similarWords returns the share of words that two texts have in common.
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
	// This is the Sørensen-Dice coefficient, where a repeated word counts as often as it
	// occurs.
	return 2 * float64(common) / float64(total)
}
