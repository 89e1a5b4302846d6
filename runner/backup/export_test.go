package backup

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// Unexported functions for the tests in package backup_test.
var (
	MadeAt   = madeAt
	PartSize = partSize
)

// HangOnRemove makes each deletion in the target block until its context ends. It first sends to
// begun.
func (t *Target) HangOnRemove(begun chan<- struct{}) { t.place = hanging{t.place, begun} }

type hanging struct {
	place
	begun chan<- struct{}
}

func (h hanging) remove(ctx context.Context, _ string) error {
	h.begun <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// Spoil applies change to the bytes of each stored backup when they are read.
func (t *Target) Spoil(change func(b []byte) []byte) { t.place = spoiled{t.place, change} }

type spoiled struct {
	place
	change func(b []byte) []byte
}

func (s spoiled) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := s.place.open(ctx, name)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(r)
	return io.NopCloser(bytes.NewReader(s.change(whole))), errors.Join(err, r.Close())
}
