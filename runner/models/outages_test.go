package models

import (
	"fmt"
	"testing"
	"time"

	"github.com/matryer/is"

	"journeyman/runner/model"
	"journeyman/store/ordertest"
)

// TestOutagesAreBounded records outages of more models than a map holds. The one that would end first is
// forgotten.
func TestOutagesAreBounded(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var o Outages
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pause := func(int) time.Duration { return time.Minute }
	for i := range 2 * maxModels {
		at := now.Add(time.Duration(i) * time.Millisecond)
		o.Failed(fmt.Sprint("down ", i), "trn_1", &model.Error{Code: "503"}, at, at, pause)
		o.Succeeded(fmt.Sprint("up ", i), at)
	}
	is.Equal(len(o.down), maxModels)
	ordertest.AtMost(is, len(o.answered), maxModels)
	blocked := func(i int) bool {
		_, found := o.Blocked(fmt.Sprint("down ", i), "trn_2", now.Add(time.Second))
		return found
	}
	is.True(!blocked(0) && !blocked(maxModels-1))
	is.True(blocked(maxModels) && blocked(2*maxModels-1))
}

// TestWrongNamesKeepOutages asks for many models that do not exist. The outage of another model is still
// known, and so are the turns that wait for it.
func TestWrongNamesKeepOutages(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	var o Outages
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pause := func(int) time.Duration { return time.Second } // shorter than goneTime
	for _, name := range []string{"down", "waited for"} {
		o.Failed(name, "trn_1", &model.Error{Code: "503"}, now, now, pause)
	}
	o.Await("waited for", "trn_2", now)
	for i := range 2 * maxModels {
		o.Lost(fmt.Sprint("wrong ", i), &model.Error{Code: "404"}, now)
	}
	is.Equal(len(o.down), maxModels)
	_, found := o.Blocked("down", "trn_3", now)
	is.True(found)
	is.Equal(o.Succeeded("waited for", now), []string{"trn_2"})
}
