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
func (t *Target) HangOnRemove(begun chan<- struct{}) { t.destination = hanging{t.destination, begun} }

type hanging struct {
	destination
	begun chan<- struct{}
}

func (h hanging) remove(ctx context.Context, _ string) error {
	h.begun <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// Spoil applies change to the bytes of each stored backup when they are read.
func (t *Target) Spoil(change func(b []byte) []byte) { t.destination = spoiled{t.destination, change} }

type spoiled struct {
	destination
	change func(b []byte) []byte
}

func (s spoiled) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := s.destination.open(ctx, name)
	if err != nil {
		return nil, err
	}
	whole, err := io.ReadAll(r)
	return io.NopCloser(bytes.NewReader(s.change(whole))), errors.Join(err, r.Close())
}
