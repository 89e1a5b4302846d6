package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"journeyman/store"
)

// measureDisk runs tasks of one step and measures the growth of the database. The server is stopped
// before and after, so that its log is part of the database.
func measureDisk(ctx context.Context, s *session) error {
	const tasks = 500
	if err := s.restart(ctx, "disk"); err != nil {
		return err
	}
	worker, err := s.newWorker(ctx, "Disk")
	if err != nil {
		return err
	}
	before, err := s.stoppedSize()
	if err != nil {
		return err
	}
	if err := s.start(ctx, "disk"); err != nil {
		return err
	}
	left := make(chan struct{}, tasks)
	for range tasks {
		left <- struct{}{}
	}
	_, err = loop{32, requestPatience, func(ctx context.Context, _ int) error {
		select {
		case <-left:
			_, err := s.do(ctx, http.MethodPost, "/api/tasks", taskBody(worker, nil))
			return err
		default:
			return errEnough
		}
	}}.run(ctx)
	if !errors.Is(err, errEnough) {
		return errors.Join(err, errors.New("the tasks took too long"))
	}
	after, err := s.stoppedSize()
	if err == nil {
		s.add(Figure{Name: "database a task", Value: float64(after-before) / tasks / 1024, Unit: "KiB", Less: true})
	}
	return errors.Join(err, s.start(ctx, "disk"))
}

// restart stops the session's server and starts another one on a new folder.
func (s *session) restart(ctx context.Context, folder string) error {
	return errors.Join(s.stop(), s.start(ctx, folder))
}

// stoppedSize stops the session's server and returns the size of its database.
func (s *session) stoppedSize() (size int64, err error) {
	dir := s.server.dir
	if err := s.stop(); err != nil {
		return 0, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.db*"))
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		size += info.Size()
	}
	return size, err
}

// measureTables measures reads, and the start, with small and with large tables.
func measureTables(ctx context.Context, s *session) error {
	for i, n := range s.Tasks {
		if err := s.table(ctx, fmt.Sprintf("table%d", i), n); err != nil {
			return fmt.Errorf("%d tasks: %w", n, err)
		}
	}
	return nil
}

// table measures with n tasks of one worker.
func (s *session) table(ctx context.Context, folder string, n int) error {
	if err := s.restart(ctx, folder); err != nil {
		return err
	}
	worker, err := s.newWorker(ctx, "Tables")
	if err != nil {
		return err
	}
	if _, err := s.do(ctx, http.MethodPost, "/api/tasks", taskBody(worker, nil)); err != nil {
		return err
	}
	dir := s.server.dir
	if err := s.stop(); err != nil {
		return err
	}
	s.progress("creating %d tasks", n)
	if err := store.CopyNewestTask(ctx, dir, n-1); err != nil {
		return err
	}
	if err := s.start(ctx, folder); err != nil {
		return err
	}
	size := grouped(n)
	s.add(Figure{Name: "start with " + size + " tasks: listening", Value: milliseconds(s.server.listening),
		Unit: "ms", Less: true})
	s.add(Figure{Name: "start with " + size + " tasks: ready", Value: milliseconds(s.server.ready),
		Unit: "ms", Less: true})
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	for _, read := range []struct{ name, path, want string }{
		{"list of 50", "/api/tasks?limit=50", `"nextCursor"`},
		{"run view", "/api/workers/" + worker, answer},
	} {
		r, err := loop{16, s.For, func(ctx context.Context, _ int) error {
			got, err := s.do(ctx, http.MethodGet, read.path, "")
			if err == nil && !bytes.Contains(got, []byte(read.want)) {
				err = fmt.Errorf("the answer has no %s: %.300s", read.want, got)
			}
			return err
		}}.run(ctx)
		if err != nil {
			return err
		}
		s.add(Figure{Name: read.name + ", " + size + " tasks", Value: r.rate(), Unit: "/s", Times: r.times(),
			Machine: s.machine(barePosts)})
	}
	return nil
}

// awaitIdle waits until the session's own server uses no CPU time. After its start it checks the whole
// database and measures the data folder, which takes the longer the larger the tables are.
func (s *session) awaitIdle(ctx context.Context) error {
	last, ok := s.used()
	for ok {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
		var now time.Duration
		if now, ok = s.used(); now-last <= 30*time.Millisecond {
			return nil
		}
		last = now
	}
	return nil
}

// grouped writes a number with a comma between groups of three digits.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}
