//go:build linux

package command_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"journeyman/store/storetest"
)

var killSeed = flag.Uint64("kill-seed", 0, "seed of TestKillNine, as a failure prints it; 0 for another each time")

const (
	killWorlds  = 3  // worlds in parallel
	killClients = 10 // of each world
)

// killRounds returns the number of rounds. FAULTS sets it for CI.
func killRounds() int {
	if n, err := strconv.Atoi(os.Getenv("FAULTS")); err == nil {
		return n
	}
	return 2
}

// A strike ends the program of a world in some way. The caller starts the next one.
type strike struct {
	name string
	hit  func(w *world)
}

// strikes are in the order in which the rounds of a world use them, repeatedly.
var strikes = []strike{
	{"at work", func(w *world) { w.now.kill() }},
	{"during a backup", (*world).killInBackup},
	{"during its start", (*world).killInStart},
	{"at work", func(w *world) { w.now.kill() }},
	{"during its stop", (*world).killInStop},
	{"at work", func(w *world) { w.now.kill() }},
	{"during a vacuum", (*world).killInVacuum},
	{"during two starts", func(w *world) { w.killInStart(); w.killInStart() }},
	{"in its sleep", (*world).killAsleep},
}

// TestKillNine kills the program repeatedly while clients use every interface. After each kill,
// acknowledged work exists and completes once, and repeated requests were carried out once.
func TestKillNine(t *testing.T) {
	t.Parallel()
	faults(t)
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	rounds := killRounds()
	t.Logf("%d rounds with seed %d", rounds, seed)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("again with: FAULTS=%d go test ./handlers/command -run TestKillNine -kill-seed %d", rounds, seed)
		}
	})
	worlds := min(killWorlds, (rounds+1)/2)
	for i := range worlds {
		t.Run(fmt.Sprint("world ", i), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, fmt.Sprint("w", i), setting{clients: killClients, seed: seed + uint64(i)})
			for n := range (rounds + worlds - 1 - i) / worlds {
				w.round(strikes[(n+3*i)%len(strikes)])
				if t.Failed() {
					t.Fatalf("round %d failed: the program was killed %s", n, strikes[(n+3*i)%len(strikes)].name)
				}
			}
			w.end()
		})
	}
}

// round loads the program, strikes, starts it again, and checks its state.
func (w *world) round(s strike) {
	w.t.Helper()
	end := w.load()
	w.awaitAnswers(3 * len(w.clients))
	w.pause(300 * time.Millisecond)
	s.hit(w)
	w.sound()
	w.serve()
	end()
	w.sum.rounds++
	w.check()
}

// end stops the program and checks what only a stopped program shows.
func (w *world) end() {
	w.t.Helper()
	w.now.stop(w.t)
	w.sound()
	w.checkHours()
	w.checkFolder()
	w.t.Logf("%+v", w.sum)
	if w.sum.acknowledged < w.sum.rounds || w.sum.rounds > 5 && w.sum.claims == w.sum.turns {
		w.t.Error("the test did not work: too few errands, or no turn was ever cut off")
	}
}

// killInStart kills the program, and the next one while it starts.
func (w *world) killInStart() {
	w.now.kill()
	p := invocation{}.start(w.t, serveArgs(w.dir, w.flags...)...)
	w.pause(400 * time.Millisecond)
	p.kill()
}

// killInStop kills the program during a normal stop.
func (w *world) killInStop() {
	w.now.signal(w.t, syscall.SIGTERM)
	w.pause(60 * time.Millisecond)
	w.now.kill()
}

// killAsleep stops the program for a moment, as if the machine slept.
func (w *world) killAsleep() {
	w.now.signal(w.t, syscall.SIGSTOP)
	w.pause(500 * time.Millisecond)
	if w.random.IntN(2) == 0 {
		w.now.signal(w.t, syscall.SIGCONT)
		w.pause(50 * time.Millisecond)
	}
	w.now.kill()
}

// killInBackup kills the program during a backup. Either the backup is complete, or it does not
// exist and its command reports that.
func (w *world) killInBackup() {
	w.t.Helper()
	dir := w.t.TempDir()
	file := filepath.Join(dir, "folder.backup")
	before := w.rows(`SELECT count(*) FROM turns`)[0][0]
	b := invocation{}.start(w.t, "backup", file, "--data", w.dir)
	w.pause(time.Second)
	w.now.kill()
	if code := b.wait(w.t); code != 0 {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || b.stderr.String() == "" {
			w.t.Errorf("a backup that failed leaves %v: %v\nstderr: %s", left, err, b.stderr)
		}
		return
	}
	w.sum.backups++
	restored := filepath.Join(dir, "restored")
	if p := (invocation{}).run(w.t, "restore", file, "--data", restored); p.wait(w.t) != 0 {
		w.t.Errorf("the backup cannot be restored: %s", p.stderr)
		return
	}
	storetest.Sound(w.t, restored)
	after, _ := strconv.Atoi(storetest.Rows(w.t, restored, `SELECT count(*) FROM turns`)[0][0])
	if had, _ := strconv.Atoi(before); after < had {
		w.t.Errorf("the backup has %d turns of %d", after, had)
	}
}

// killInVacuum kills the program while it returns free space to the disk.
func (w *world) killInVacuum() {
	w.t.Helper()
	v := invocation{}.start(w.t, "vacuum", "--data", w.dir)
	w.pause(500 * time.Millisecond)
	w.now.kill()
	if code := v.wait(w.t); code != 0 && v.stderr.String() == "" {
		w.t.Error("a vacuum that was cut off says nothing")
	}
}
