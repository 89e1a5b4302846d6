package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"journeyman/store/gate"
	"journeyman/store/sqlite"
)

const databaseName = "journeyman.db"

// archived are the folders that a backup holds beside the database.
var archived = [...]string{"files", "workspaces"}

// begunAnewName is the file that marks a folder whose database was lost and created anew. The new
// database names none of the older files. The sweep spares files that are older than the mark.
const begunAnewName = "begun-anew"

// begunAnewDoneName is the file that marks such a folder once its new database exists. A start that
// was killed before may be repeated.
const begunAnewDoneName = "begun-anew-done"

// backupRunsName is the file of the backup runs.
const backupRunsName = "backups.json"

// serverName is the file that says which database on a server belongs to the folder: the id of the
// database in the first line, and a sentence for people in the second.
const serverName = "database-server"

// bucketName is the file that names the bucket of the folder's blobs.
const bucketName = "files-bucket"

const (
	blobFolders   = 256        // one for each first byte of the SHA-256
	removedSuffix = ".removed" // of the name of a blob that is being removed
)

// sealKeyName is the file of the key that seals secrets at rest. Backups do not contain it,
// so a backup alone reveals no secret. The operator keeps a separate copy of the file.
const sealKeyName = "secret.key"

// An unfinished file has a name such as ".journeyman-….tmp", in the folder of the finished file. A
// killed process leaves such files behind, and the next start removes them. The lock of the folder
// proves that no process still writes them.
const (
	tempPrefix = ".journeyman-"
	tempSuffix = ".tmp"
)

// tempPattern is for os.CreateTemp.
const tempPattern = tempPrefix + "*" + tempSuffix

// isTemp reports whether a name is that of an unfinished file. Only the program uses such names.
func isTemp(name string) bool {
	return strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)
}

// lastBackupName is the file in which the time of the last backup is stored. Backups do not contain
// it, so a restored folder has no last backup.
const lastBackupName = "last-backup"

// checksName is the file with the times at which the tables were last found sound. Backups do not
// contain it, so a restored database is checked anew.
const checksName = "checked-tables.json"

// isNodeFile reports whether a file belongs to one of the nodes that share the folder: see Node.Name.
func isNodeFile(name string) bool {
	return strings.HasPrefix(name, "lock-") || strings.HasPrefix(name, "control-") && strings.HasSuffix(name, ".sock")
}

// openFolder creates the data folder if it does not exist. It removes the access of other users,
// because the folder holds keys, mail and files. It refuses a folder such as /tmp with files of
// other programs, because their owners would lose access.
func openFolder(dir string, log *slog.Logger) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("look at data folder: %w", err)
	}
	// MkdirAll leaves the mode of a folder that exists as it is.
	mode := info.Mode().Perm()
	if mode&0o077 == 0 {
		return nil
	}
	foreign, err := foreignName(dir)
	if err != nil {
		return err
	}
	if foreign != "" {
		return fmt.Errorf("%s is open to other users (mode %04o) and holds %q, which belongs to another program: "+
			"choose a new folder, or close it with chmod 700 if nobody else needs it", dir, mode, foreign)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("%s is open to other users (mode %04o) and its mode cannot be changed: "+
			"make the user of this program its owner, or choose another folder: %w", dir, mode, err)
	}
	log.Warn("the data folder was open to other users and is now closed to them",
		"folder", dir, "was", fmt.Sprintf("%04o", mode), "is", "0700")
	return nil
}

// foreignName returns the name of a file of another program in a folder without a database. It
// returns "" if there is none.
func foreignName(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("look at data folder: %w", err)
	}
	ours := []string{databaseName, "lock", "control.sock", lastBackupName, begunAnewName,
		begunAnewDoneName, gate.DiskReportedName, backupRunsName, sealKeyName, serverName, bucketName, checksName,
		"mcp.json", "files", "workspaces", "cache", "lost+found"} // in every new file system
	foreign := ""
	for _, e := range entries {
		if e.Name() == databaseName {
			return "", nil
		}
		if foreign == "" && !slices.Contains(ours, e.Name()) && !isNodeFile(e.Name()) && !isTemp(e.Name()) {
			foreign = e.Name()
		}
	}
	return foreign, nil
}

// writeNote writes a small file of the data folder durably: an old file stays whole until the new one
// is.
func writeNote(dir, name, text string) error {
	const doing = "write %s of the data folder: %w"
	f, err := os.CreateTemp(dir, tempPattern)
	if err != nil {
		return fmt.Errorf(doing, name, err)
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(fmt.Errorf(doing, name, err), os.Remove(f.Name()))
	}
	return sqlite.SyncDir(dir)
}
