package store

import (
	"time"
)

// EnvelopeFacts holds the facts from which Envelopes.Compose makes the envelope of a turn: the time
// of acceptance, the channel, the author and the folder.
type EnvelopeFacts struct {
	Turn        Turn
	At          time.Time // in the zone of the schedule, or of the server
	Channel     Channel
	AuthorName  string // "" if the author is a stranger
	AuthorEmail string // "" if the author is a stranger
	Asker       string // title of the worker whose turn sends the instruction; only on ChannelWorker
	Mail        *MailNote
	Schedule    *Schedule
	Attachments []File
	Workspace   Listing
}

// A Channel is the way by which an instruction came. It is the Trigger, or one of the constants
// below, which are more precise.
type Channel string

// The channels besides the triggers.
const (
	ChannelMCP     Channel = "mcp"     // a client of the server's /mcp
	ChannelCommand Channel = "command" // the command line
	ChannelWorker  Channel = "worker"  // another worker, which waits for the result
)

// A MailNote holds the data of a mail besides its text. The sender wrote all of it, except for
// Verified, Checks and Released, so it may be false.
type MailNote struct {
	FromName, From string
	Subject        string
	To, Cc         []string
	Date           time.Time // of the header, in the author's zone; zero if it has none
	Verified       bool      // checks prove the author
	Checks         string    // the results of SPF, DKIM and DMARC, in words
	Released       bool      // a member who manages mail has released the mail
}

// A Listing holds the first names in a folder.
type Listing struct {
	Folder Folder
	Names  []string // sorted; the names of folders end with a slash
	More   bool     // there are more than Names
}

// Envelopes holds the functions that make the envelope of a turn. Compose runs in the
// writer's transaction, so it must be fast, and read and change nothing but its argument. Look
// reads the disk, so the store calls it before the transaction.
type Envelopes struct {
	Look    func(Folder) Listing
	Compose func(EnvelopeFacts) string
}
