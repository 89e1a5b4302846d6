package share

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/db"
)

// TestShares takes shares until each limit is reached.
func TestShares(t *testing.T) {
	t.Parallel()
	limits := LimitsOf(8)
	for name, tt := range map[string]struct {
		holder func(i int) Holder
		most   int
		kind   db.Kind
		says   string
	}{
		"a key": {func(i int) Holder {
			return Holder{Key: "k", Address: fmt.Sprint(i), Organization: fmt.Sprint(i)}
		}, 2, db.Limited, "this key has 2 things, the most it may have: end some, or try again later"},
		"an address": {func(i int) Holder {
			return Holder{Key: fmt.Sprint(i), Address: "192.0.2.1", Organization: fmt.Sprint(i)}
		}, 4, db.Limited, "your address has 4 things"},
		"a network": {func(i int) Holder {
			return Holder{Address: fmt.Sprintf("2001:db8::%x", i)}
		}, 4, db.Limited, "your address has 4 things"},
		"an organization": {func(i int) Holder {
			return Holder{Key: fmt.Sprint(i), Address: fmt.Sprint(i), Organization: "o"}
		}, 4, db.Limited, "the organization has 4 things"},
		"all": {func(i int) Holder {
			return Holder{Key: fmt.Sprint(i), Address: fmt.Sprint(i), Organization: fmt.Sprint(i)}
		}, 8, db.Busy, "the server has 8 things, the most there may be: try again later"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			is := is.New(t)
			s := New("things", "too_many_things", limits)
			var releases []func()
			for i := range tt.most {
				release, err := s.Take(tt.holder(i))
				is.NoErr(err)
				releases = append(releases, release)
			}
			_, err := s.Take(tt.holder(9))
			is.True(db.IsKind(err, tt.kind))
			is.True(strings.Contains(err.Error(), tt.says))
			is.Equal(s.Check(tt.holder(9)).Error(), err.Error())
			if tt.kind == db.Limited {
				release, err := s.Take(Holder{Key: "other", Address: "192.0.2.9", Organization: "other"})
				is.NoErr(err) // other holders have their own shares
				release()
			}
			for _, release := range releases {
				release()
			}
			is.Equal(s.Total(), int64(0))
			is.NoErr(s.Check(tt.holder(9)))
			is.Equal(len(s.taken), 0) // no holder has shares left
		})
	}
}
