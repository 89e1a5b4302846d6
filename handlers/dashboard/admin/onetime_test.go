package admin

import (
	"strconv"
	"testing"
	"time"

	"github.com/matryer/is"
)

func TestOneTime(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	now := time.Unix(0, 0)
	o := &oneTime{now: func() time.Time { return now }}
	o.put("ann", "key", "secret")
	is.Equal(o.take("eve", "key"), nil)
	is.Equal(o.take("ann", "link"), nil)
	is.Equal(o.take("ann", "key"), "secret")
	is.Equal(o.take("ann", "key"), nil) // only once

	o.put("ann", "key", "late")
	now = now.Add(oneTimeLifetime + 1)
	is.Equal(o.take("ann", "key"), nil)

	for i := range maxOneTime + 10 {
		now = now.Add(time.Millisecond)
		o.put(strconv.Itoa(i), "key", i)
	}
	is.Equal(len(o.values), maxOneTime)
	is.Equal(o.take("0", "key"), nil) // the oldest value was removed
	is.Equal(o.take("10", "key"), 10)
}
