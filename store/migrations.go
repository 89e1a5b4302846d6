package store

import _ "embed"

//go:embed migrations/2.sql
var toVersion2 string

//go:embed migrations/3.sql
var toVersion3 string

// migrations returns the steps that upgrade an older database: step i takes version i+1
// to i+2. schema.sql describes the newest version, which is one more than there are steps.
func migrations() []string { return []string{toVersion2, toVersion3} }

// NewestVersion returns the version of the databases that this program creates. It opens no
// newer one.
func NewestVersion() int { return len(migrations()) + 1 }
