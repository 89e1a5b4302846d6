//go:build unix

package runner_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"journeyman/runner"
	"journeyman/store"
	"journeyman/store/storetest"
)

// Environment variables of the process that the test kills.
const (
	actorData   = "JOURNEYMAN_TEST_ACTOR_DATA"   // its data folder
	actorServer = "JOURNEYMAN_TEST_ACTOR_SERVER" // address of the model server
	actorModel  = "JOURNEYMAN_TEST_ACTOR_MODEL"  // the model's name for wire.openModel
)

// TestScenarioProcess is the process that TestScenariosKilled kills. In a normal test run it does
// nothing.
func TestScenarioProcess(t *testing.T) {
	dir := os.Getenv(actorData)
	if dir == "" {
		return
	}
	st, err := store.Open(context.Background(), dir, storetest.Schema(t), store.Options{Database: storetest.DatabaseOf(dir)})
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Server: &httptest.Server{URL: os.Getenv(actorServer)}}
	f := fixtureOn(t, st, scenarioSetups(t, w.openModel(t, os.Getenv(actorModel)), runner.Limits{})...)
	f.start()
	_, _ = io.Copy(io.Discard, os.Stdin) // until this process or its parent is killed
}

// TestScenariosKilled kills a whole process with SIGKILL, either during a model call or a moment
// after its answer. Another process then completes the turn with the same result.
func TestScenariosKilled(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 2)) // the same cases in each run
	t.Parallel()
	var cases []faultCase
	for _, sc := range scenarios() {
		if len(sc.inputs) > 1 || len(sc.people) > 0 || sc.steps > 0 || sc.end != "" || sc.actsOnce() {
			continue // they need more setup, or their end depends on the time of death
		}
		for at := range sc.says {
			cases = append(cases, faultCase{sc: sc, provider: wireFormats[rnd.IntN(len(wireFormats))], at: at})
		}
	}
	rnd.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	for i, c := range cases[:storetest.Drawn(40, 2)] {
		pause := time.Duration(0)
		if i%2 == 1 {
			pause = time.Duration(rnd.IntN(30_000)) * time.Microsecond
		}
		t.Run(fmt.Sprintf("%s, %s, at %d, after %v", c.sc.name, c.provider, c.at, pause), func(t *testing.T) {
			t.Parallel()
			p := newPerformance(t, c.sc, c.provider)
			p.at = c.at
			p.performKilled(pause)
		})
	}
}

// awaitLock waits until no process holds the lock of a data folder. A command that the killed
// process was about to start inherits the lock until its exec.
func awaitLock(t testing.TB, dir string) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Error(err)
	}
}

// actsOnce reports whether some calls of the scenario must not be repeated after an interruption.
func (sc scenario) actsOnce() bool {
	return slices.ContainsFunc(sc.says, func(r reply) bool {
		return slices.ContainsFunc(r.does, func(a act) bool { return a.once })
	})
}

// performKilled begins the scenario in a process that is killed, and completes it in this process.
func (p *performance) performKilled(pause time.Duration) {
	p.t.Helper()
	var child *exec.Cmd
	dir := ""
	kill := func() {
		_ = child.Process.Kill()
		_ = child.Wait()
		awaitLock(p.t, dir)
		p.deaths <- death{dir: dir}
	}
	p.fault = fault{name: "SIGKILL", kills: true, late: pause > 0, strike: func(_ *performance, _ asked, s said) said {
		if pause > 0 { // the process dies while it reads the answer or runs the tools
			time.AfterFunc(pause, kill)
			return s
		}
		go kill()
		return said{hangs: true}
	}}
	w := p.begin(false)
	n := store.NewTurn{Caller: p.f.owner, WorkerID: p.f.worker.ID, Input: p.real(p.inputs[0]), Budget: store.BudgetStandard}
	p.attach(&n)
	turn := p.f.acceptTurn(n)
	d := p.f.die()
	if d.err != nil {
		p.t.Fatal(d.err)
	}
	dir = d.dir
	child = exec.Command(os.Args[0], "-test.run=^TestScenarioProcess$")
	child.Env = append(os.Environ(), actorData+"="+dir, actorServer+"="+w.URL, actorModel+"="+p.provider+":s")
	in, err := child.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	defer in.Close()
	p.mu.Lock() // kill needs the process, which will soon ask the model
	err = child.Start()
	p.mu.Unlock()
	if err != nil {
		p.t.Fatal(err)
	}
	p.f = p.f.after(until(p.t, p.deaths, "the process is killed"))
	p.f.start()
	turn, _ = p.watch(turn, nil)
	p.check([]store.Turn{turn})
}
