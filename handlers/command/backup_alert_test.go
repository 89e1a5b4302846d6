package command_test

import (
	"errors"
	"io"
	"testing"

	"github.com/matryer/is"

	"journeyman/handlers/command"
	"journeyman/store"
	"journeyman/store/people"
	"journeyman/store/storetest"
)

// A fullDisk is a writer whose writes fail.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// TestFailedBackupRaisesAnAlert fails a backup, which raises an alert, and then makes one, which
// raises none.
func TestFailedBackupRaisesAnAlert(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	storetest.Embedded(t)
	st := storetest.Open(t, store.Options{})
	owner, _ := storetest.Caller(t, st, "Acme", "ann@example.com", people.RoleOwner)
	_, err := st.Effects.AddAlertChannel(t.Context(), owner.Caller, store.NewAlertChannel{Email: "ann@example.com",
		Topics: []store.AlertTopic{store.TopicBackup}, Frequency: store.AlertNow})
	is.NoErr(err)
	folder := command.DataFolder{Store: st}
	_, err = folder.Backup(t.Context(), io.Discard)
	is.NoErr(err)
	_, waits, err := st.Effects.AlertsDue(t.Context())
	is.NoErr(err)
	is.True(!waits) // a complete backup raises no alert
	_, err = folder.Backup(t.Context(), fullDisk{})
	is.True(err != nil) // the command gets the error, too
	_, waits, err = st.Effects.AlertsDue(t.Context())
	is.NoErr(err)
	is.True(waits) // the failure raises an alert
}
