package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/matryer/is"

	"journeyman/runner/backup"
	"journeyman/store"
	"journeyman/store/objects"
	"journeyman/store/storetest"
)

func noEnvironment(string) string { return "" }

// newTarget returns a target in a new folder, for the given recipients, and the folder.
func newTarget(t testing.TB, recipients ...string) (*backup.Target, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "backups")
	target, err := backup.NewTarget(backup.Storage{To: dir, Recipient: recipients}, dir, noEnvironment)
	is.New(t).NoErr(err)
	return target, dir
}

// filled returns a store with a file and a workspace.
func filled(t testing.TB) *store.Store {
	t.Helper()
	storetest.Embedded(t)
	s := storetest.Open(t, store.Options{})
	_, err := s.PutBlob(t.Context(), strings.NewReader("kept"), 100)
	is.New(t).NoErr(err)
	return s
}

func namesIn(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestWriteAndRestore writes backups, plain and encrypted, and restores the newest of each
// folder.
func TestWriteAndRestore(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	mine, err := age.GenerateX25519Identity()
	is.NoErr(err)
	strong, err := age.GenerateHybridIdentity()
	is.NoErr(err)
	other, err := age.GenerateX25519Identity()
	is.NoErr(err)
	for name, tt := range map[string]struct {
		recipient, identity string
	}{
		"plain":        {"", ""},
		"encrypted":    {mine.Recipient().String(), mine.String()},
		"post-quantum": {strong.Recipient().String(), strong.String()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := filled(t)
			var recipients []string
			if tt.recipient != "" {
				recipients = append(recipients, tt.recipient)
			}
			target, dir := newTarget(t, recipients...)
			for _, at := range []time.Time{time.Unix(2e9, 0), time.Unix(1e9, 0)} { // the newer one first
				w, err := target.Write(t.Context(), target.NewName(at), 1, s)
				is.NoErr(err)
				info, err := os.Stat(filepath.Join(dir, w.Name))
				is.NoErr(err)
				is.Equal(info.Size(), w.Size)
				is.Equal(info.Mode().Perm(), os.FileMode(0o600))
			}
			is.Equal(len(namesIn(t, dir)), 2)

			stored, err := backup.Open(t.Context(), backup.Storage{}, dir, noEnvironment, time.Unix(2e9, 0))
			is.NoErr(err)
			path := stored.Path
			defer stored.Close()
			is.True(strings.Contains(path, "journeyman-20330518T033320Z-")) // not the newest
			if tt.identity != "" {
				whole, err := os.ReadFile(path)
				is.NoErr(err)
				_, err = backup.Unseal(bytes.NewReader(whole), nil)
				is.True(errors.Is(err, backup.ErrSealed))
				_, err = backup.Unseal(bytes.NewReader(whole), strings.NewReader(other.String()))
				is.True(err != nil && strings.Contains(err.Error(), "for other keys"))
				_, err = backup.Unseal(bytes.NewReader(whole), strings.NewReader("hello"))
				is.True(err != nil && strings.Contains(err.Error(), "no secret keys"))
				cut, err := backup.Unseal(bytes.NewReader(whole[:len(whole)/2]), strings.NewReader(tt.identity))
				is.NoErr(err)
				is.True(store.Restore(t.Context(), filepath.Join(t.TempDir(), "cut"), cut) != nil) // a part is restored
			}
			archive, err := backup.Unseal(stored, strings.NewReader(tt.identity))
			is.NoErr(err)
			restored := filepath.Join(t.TempDir(), "restored")
			is.NoErr(store.Restore(t.Context(), restored, archive))
			r, err := store.Open(t.Context(), restored, storetest.Schema(t), store.Options{})
			is.NoErr(err)
			is.NoErr(r.Close())
		})
	}
}

// TestStopDuringRemoval ends the context before and during the deletion of a failed backup's files.
// The deletion must end soon, although the destination does not respond.
func TestStopDuringRemoval(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"during the removal": false, "before it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			target, _ := newTarget(t)
			ctx, stop := context.WithCancel(t.Context())
			begun, ended := make(chan struct{}, 1), make(chan error, 1)
			target.HangOnRemove(begun)
			target.Spoil(func([]byte) []byte {
				if before {
					stop()
				}
				return nil
			})
			go func() {
				_, err := target.Write(ctx, target.NewName(time.Now()), 1, filled(t))
				ended <- err
			}()
			<-begun
			stop()
			select {
			case err := <-ended:
				is.True(errors.Is(err, context.Canceled)) // the removal did not end by itself
			case <-time.After(25 * time.Second): // less than cleanTime, and far more than stopTime
				t.Fatal("the stop waits for the removal")
			}
		})
	}
}

// TestWriteFails checks that no failure of Write leaves a file that looks like a backup.
func TestWriteFails(t *testing.T) {
	t.Parallel()
	s := filled(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		ctx    context.Context
		change func(b []byte) []byte
		says   string
	}{
		"cut after writing":  {t.Context(), func(b []byte) []byte { return b[:len(b)-1] }, "read it again"},
		"a changed bit":      {t.Context(), func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, "read it again"},
		"bytes at its end":   {t.Context(), func(b []byte) []byte { return append(b, "more"...) }, "read it again"},
		"another backup":     {t.Context(), func([]byte) []byte { return nil }, "read it again"},
		"a cancelled backup": {cancelled, func(b []byte) []byte { return b }, "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			target, dir := newTarget(t)
			target.Spoil(tt.change)
			_, err := target.Write(tt.ctx, target.NewName(time.Now()), 1, s)
			is.True(err != nil)
			is.True(strings.Contains(err.Error(), tt.says)) // the error does not say why
			is.Equal(len(namesIn(t, dir)), 0)
		})
	}
	t.Run("a destination that is no folder", func(t *testing.T) {
		t.Parallel()
		is := is.New(t)
		to := filepath.Join(t.TempDir(), "file", "below")
		is.NoErr(os.WriteFile(filepath.Dir(to), nil, 0o600))
		target, err := backup.NewTarget(backup.Storage{To: to}, to, noEnvironment)
		is.NoErr(err)
		_, err = target.Write(t.Context(), target.NewName(time.Now()), 1, s)
		is.True(err != nil && strings.Contains(err.Error(), "not a directory"))
	})
}

// TestPrune checks that Prune deletes surplus and old backups only. It keeps the newest one and all
// files with other names.
func TestPrune(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 10, 0, 0, 0, 0, time.UTC)
	const suffix = "T000000Z-00000000.tgz"
	for name, tt := range map[string]struct {
		keep backup.Keep
		left []string
	}{
		"all":                {backup.Keep{}, []string{"01", "05", "07", "09"}},
		"the newest two":     {backup.Keep{Newest: 2}, []string{"07", "09"}},
		"four days":          {backup.Keep{For: 4 * 24 * time.Hour}, []string{"07", "09"}},
		"either":             {backup.Keep{Newest: 3, For: 100 * 24 * time.Hour}, []string{"05", "07", "09"}},
		"never the last one": {backup.Keep{Newest: 1, For: time.Hour}, []string{"09"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			target, dir := newTarget(t)
			is.NoErr(os.MkdirAll(dir, 0o700))
			foreign := []string{"journeyman.tgz", "journeyman-20260501T000000Z-00000000.tgz.bak", "notes.txt",
				"journeyman-20269901T000000Z-00000000.tgz", "journeyman-20260509T120000Z-00000000.tgz.part"}
			stale := "journeyman-20260501T000000Z-00000001.tgz.part"
			for _, file := range append(slices.Clone(foreign), stale) {
				is.NoErr(os.WriteFile(filepath.Join(dir, file), nil, 0o600))
			}
			for _, day := range []string{"01", "05", "07", "09"} {
				is.NoErr(os.WriteFile(filepath.Join(dir, "journeyman-202605"+day+suffix), nil, 0o600))
			}
			_, err := target.Prune(t.Context(), now, tt.keep, "")
			is.NoErr(err)
			want := slices.Clone(foreign)
			for _, day := range tt.left {
				want = append(want, "journeyman-202605"+day+suffix)
			}
			slices.Sort(want)
			is.Equal(namesIn(t, dir), want)
		})
	}
}

// TestTargets checks which kind of destination each address means.
func TestTargets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for to, tt := range map[string]struct {
		storage backup.Storage
		path    string // of the name x
		says    string
	}{
		"":                       {says: "name a file"},
		dir:                      {path: filepath.Join(dir, "x")},
		dir + "/new/":            {path: filepath.Join(dir, "new", "x")},
		dir + "/b.tgz":           {path: filepath.Join(dir, "b.tgz")},
		dir + "/flag":            {storage: backup.Storage{To: dir + "/flag"}, path: filepath.Join(dir, "flag", "x")},
		"s3://bucket/some/where": {storage: backup.Storage{Access: objects.Access{Endpoint: "https://s3.test", AccessKey: "a", SecretKey: "b"}}, path: "s3://bucket/some/where/x"},
		"s3://bucket":            {storage: backup.Storage{Access: objects.Access{Endpoint: "http://127.0.0.1:9", AccessKey: "a", SecretKey: "b"}}, path: "s3://bucket/x"},
		"s3:///prefix":           {storage: backup.Storage{Access: objects.Access{Endpoint: "https://s3.test"}}, says: "names no bucket"},
		"s3://bucket/a":          {storage: backup.Storage{Access: objects.Access{Endpoint: "s3.test"}}, says: "--backup-s3-endpoint"},
		"s3://bucket/b":          {storage: backup.Storage{Access: objects.Access{Endpoint: "https://s3.test", AccessKey: "a"}}, says: "belong together"},
		"x":                      {storage: backup.Storage{Recipient: []string{"AGE-SECRET-KEY-1"}}, says: "not a public key"},
	} {
		t.Run(to, func(t *testing.T) {
			is := is.New(t)
			target, err := backup.NewTarget(tt.storage, to, noEnvironment)
			if tt.says != "" {
				is.True(err != nil && strings.Contains(err.Error(), tt.says))
				return
			}
			is.NoErr(err)
			is.Equal(target.Path("x"), tt.path)
		})
	}
	is := is.New(t)
	target, err := backup.NewTarget(backup.Storage{}, dir+"/data/backups/", noEnvironment)
	is.NoErr(err)
	is.True(target.Outside(dir+"/data") != nil)
	is.NoErr(target.Outside(dir + "/other"))
	_, err = backup.Open(t.Context(), backup.Storage{}, dir, noEnvironment, time.Now())
	is.True(err != nil && strings.Contains(err.Error(), "holds no backup"))
	for size, want := range map[int64]uint64{-1: 8 << 20, 0: 8 << 20, 10 << 30: 8 << 20, 1 << 40: 234 << 20} {
		is.Equal(backup.PartSize(size), want)
	}
}

// FuzzUnseal unseals random bytes. Unseal must not panic, and reading its result must not panic.
func FuzzUnseal(f *testing.F) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		f.Fatal(err)
	}
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, id.Recipient())
	if err == nil {
		_, err = io.WriteString(w, "archive")
	}
	if err = errors.Join(err, w.Close()); err != nil {
		f.Fatal(err)
	}
	for _, b := range [][]byte{nil, sealed.Bytes(), sealed.Bytes()[:60], []byte("age-encryption.org/v1\n-> X25519"), []byte("plain")} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := backup.Unseal(bytes.NewReader(b), strings.NewReader(id.String()))
		if err == nil {
			_, _ = io.Copy(io.Discard, r)
		}
		backup.MadeAt(string(b))
	})
}
