package runner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner"
	"journeyman/runner/model"
	"journeyman/runner/tool"
)

// A describing is a model with a test's function as its Describe method.
type describing struct {
	*fakeModel
	describe func(ctx context.Context) (model.Capabilities, error)
	asked    atomic.Int64
}

func (m *describing) Describe(ctx context.Context) (model.Capabilities, error) {
	m.asked.Add(1)
	return m.describe(ctx)
}

// describes returns a Describe method that states these limits.
func describes(can model.Capabilities) func(context.Context) (model.Capabilities, error) {
	return func(context.Context) (model.Capabilities, error) { return can, nil }
}

// TestDescribedModel runs turns with models that state their own limits.
func TestDescribedModel(t *testing.T) {
	t.Parallel()
	sizes := func(can model.Capabilities, err error) func(context.Context) (model.Capabilities, error) {
		return func(context.Context) (model.Capabilities, error) { return can, err }
	}
	for name, tt := range map[string]struct {
		prices   string
		describe func(context.Context) (model.Capabilities, error)
		most     int // tokens that the call may produce
	}{
		"its own limit": {`{}`, sizes(model.Capabilities{ContextWindow: 9000, MaxOutput: 777}, nil), 777},
		"the price table comes first": {`{"own":{"input":0,"output":0,"maxOutput":555}}`,
			sizes(model.Capabilities{ContextWindow: 9000, MaxOutput: 777}, nil), 555},
		"a tiny window": {`{}`, sizes(model.Capabilities{ContextWindow: 300}, nil), 256},
		"no answer": {`{"own":{"input":0,"output":0,"maxOutput":600}}`,
			sizes(model.Capabilities{}, errors.New("down")), 600},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			m := &describing{fakeModel: named("own"), describe: tt.describe}
			f := newFixture(t, withModel(m), withPrices(t, tt.prices))
			turn := f.wait(f.accept("hi"))
			is.Equal(turn.OutputText, "I am own")
			is.Equal(m.seen()[0].MaxTokens, tt.most)
			f.wait(f.accept("again"))
			is.Equal(m.asked.Load(), int64(1)) // the answer or the failure is cached
		})
	}
}

// TestDescribedAgain asks a model again when its description has expired. Without an answer, the
// old description stays.
func TestDescribedAgain(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var passed atomic.Int64 // since the start of the test
	var down atomic.Bool
	m := &describing{fakeModel: named("own"), describe: func(ctx context.Context) (model.Capabilities, error) {
		if down.Load() {
			return model.Capabilities{}, errors.New("down")
		}
		return model.Capabilities{ContextWindow: 9000, MaxOutput: 777}, nil
	}}
	clock := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	f := newFixture(t, withModel(m), withClock(clock))
	f.wait(f.accept("one"))
	down.Store(true)
	for i, wait := range []time.Duration{11 * time.Minute, time.Second, time.Minute} {
		passed.Add(int64(wait))
		f.wait(f.accept("more"))
		is.Equal(m.seen()[i+1].MaxTokens, 777) // the earlier description stays
	}
	is.Equal(m.asked.Load(), int64(3)) // not at the second turn, which comes too soon
}

// TestModelsWithoutVisionViewNoImages checks that only models with vision get the tool view_image.
func TestModelsWithoutVisionViewNoImages(t *testing.T) {
	t.Parallel()
	for can, offered := range map[model.Capabilities]bool{
		{ContextWindow: 32_768, Vision: true}: true,
		{ContextWindow: 32_768, Tools: true}:  false,
	} {
		is := is.New(t)
		m := &describing{fakeModel: named("own"), describe: func(context.Context) (model.Capabilities, error) { return can, nil }}
		f := newFixture(t, withModel(m), func(c *runner.Config) { c.Tools = []tool.Tool{fakeTool{name: "view_image"}} })
		f.wait(f.accept("hi"))
		is.Equal(len(m.seen()[0].Tools) == 1, offered)
	}
}
