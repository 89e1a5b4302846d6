package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// A laneTest acquires units of a lane in goroutines, and knows who has them.
type laneTest struct {
	t    *testing.T
	lane *Lane
	held chan heldUnits
	left int // waiting calls of Acquire
}

type heldUnits struct {
	name    string
	release func()
}

// ask begins to acquire n units, and returns when the lane knows of it.
func (l *laneTest) ask(name string, c Client, n int64) {
	l.t.Helper()
	l.left++
	asked := make(chan struct{})
	ctx := &announcing{Context: l.t.Context(), asked: asked}
	go func() {
		release, err := l.lane.Acquire(ctx, c, n)
		if err == nil {
			l.held <- heldUnits{name, release}
		}
	}()
	<-asked
}

// An announcing context reports that Acquire waits, which is after it has joined the line.
type announcing struct {
	context.Context
	asked chan struct{}
}

func (a *announcing) Done() <-chan struct{} {
	close(a.asked)
	return a.Context.Done()
}

// got returns the holders since the last call. Their number is known: those that do not wait.
func (l *laneTest) got() (list []heldUnits) {
	for n := l.left - l.lane.Waiting(); n > 0; n-- {
		list = append(list, <-l.held)
		l.left--
	}
	slices.SortFunc(list, func(a, b heldUnits) int { return strings.Compare(a.name, b.name) })
	return list
}

func names(list []heldUnits) (all string) {
	for _, h := range list {
		all += h.name + " "
	}
	return strings.TrimSpace(all)
}

// TestLaneIsShared lets many requests of one party wait. Others get units at once, or next.
func TestLaneIsShared(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	l := &laneTest{t: t, lane: NewLane(8), held: make(chan heldUnits, 100)}
	stranger := func(organization, sender string) Client {
		return Client{Organization: organization, Sender: sender, Stranger: true}
	}
	for i := range 16 {
		l.ask(fmt.Sprintf("a%02d", i), stranger("A", "1.2.3.4"), 1)
	}
	first := l.got()
	is.Equal(names(first), "a00") // half of the strangers' quarter
	l.ask("other sender", stranger("A", "5.6.7.8"), 1)
	l.ask("other organization", stranger("B", "1.2.3.4"), 1)
	second := l.got()
	is.Equal(names(second), "other organization")
	l.ask("third organization", stranger("C", "1.2.3.4"), 1) // strangers have their quarter
	is.Equal(names(l.got()), "")
	for i := range 6 {
		l.ask(fmt.Sprintf("member%d", i), Client{Organization: "A", Sender: "usr_1"}, 1)
	}
	members := l.got()
	is.Equal(names(members), "member0 member1 member2") // with the stranger's unit they have half
	l.ask("member of B", Client{Organization: "B", Sender: "usr_2"}, 1)
	is.Equal(names(l.got()), "member of B") // they wait for nobody
	second[0].release()
	is.Equal(names(l.got()), "third organization") // it uses less than A
	members[0].release()
	is.Equal(names(l.got()), "member3")
	first[0].release()
	is.Equal(names(l.got()), "other sender") // the first sender was served before
	members[1].release()
	members[2].release()
	is.Equal(names(l.got()), "member4 member5")
}

// TestLaneFitsLarge asks for more than a limit. Such a holder must be alone in its share, and small
// requests do not overtake one that is next.
func TestLaneFitsLarge(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	l := &laneTest{t: t, lane: NewLane(8), held: make(chan heldUnits, 100)}
	l.ask("large", Client{Organization: "A", Sender: "x", Stranger: true}, 7)
	l.ask("second", Client{Organization: "A", Sender: "y"}, 1)
	large := l.got()
	is.Equal(names(large), "large")
	l.ask("larger", Client{Organization: "B"}, 9) // it gets the whole lane
	l.ask("small", Client{Organization: "B", Sender: "other"}, 1)
	is.Equal(names(l.got()), "")
	large[0].release()
	all := l.got()
	is.Equal(len(all), 1)
	all[0].release()
	more := l.got()
	for _, h := range more {
		h.release()
	}
	for _, h := range l.got() {
		h.release()
	}
	is.Equal(l.left, 0)
	is.Equal(len(l.lane.used)+len(l.lane.served), 0) // nothing is left behind
}

// TestLaneIsLeft ends waits by their contexts.
func TestLaneIsLeft(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	lane := NewLane(2)
	release, err := lane.Acquire(t.Context(), Client{}, 2)
	is.NoErr(err)
	cause := errors.New("too late")
	for range 3 {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		_, err := lane.Acquire(ctx, Client{Organization: "A"}, 1)
		is.True(errors.Is(err, cause))
	}
	is.Equal(lane.Waiting(), 0)
	release()
	release() // a second call changes nothing
	is.Equal(len(lane.used)+len(lane.served), 0)
	release, err = lane.Acquire(t.Context(), Client{Organization: "A"}, 2)
	is.NoErr(err)
	release()
}

// TestPoolOfSmallMachine checks the sizes of the lanes for machines of 1, 2 and 64 GiB.
func TestPoolOfSmallMachine(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	for gib, want := range map[int64]int64{1: 224, 2: 256, 64: 448} {
		p := NewFilterPoolWithin(gib<<30, "")
		is.Equal([]int64{p.documents.size, p.mails.size}, []int64{want, want})
	}
}
