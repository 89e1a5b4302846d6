package store

import "fmt"

// A migration upgrades a database by one version. SQLite and PostgreSQL declare tables in different
// ways, so each engine has its own script. A test checks that both lead to schema.sql.
type migration struct {
	file   string // for a database file
	server string // for a database on a PostgreSQL server
}

// versions describes the versions of the tables that a program knows.
type versions struct {
	// steps are the migrations: step i upgrades version i+1 to i+2. schema.sql describes the newest
	// version, which is one more than there are steps.
	steps []migration

	// oldest is the version of the oldest programs that work with the newest version of the tables. If it
	// is not greater than the version before, nodes can be replaced one after the other. So a step that
	// only adds tables, indexes and columns with defaults leaves it as it is. A step that removes
	// something, or that older programs must know, sets it to the first version that allows for it.
	oldest int
}

// knownVersions returns the versions of this program. Version 1 is the first one, so there are no steps.
func knownVersions() *versions { return &versions{oldest: 1} }

// newest returns the version of the databases that the program creates.
func (v *versions) newest() int { return len(v.steps) + 1 }

// files returns the scripts of the steps for a database file.
func (v *versions) files() []string {
	return v.scripts(func(m migration) string { return m.file })
}

// servers returns the scripts of the steps for a database on a server.
func (v *versions) servers() []string {
	return v.scripts(func(m migration) string { return m.server })
}

func (v *versions) scripts(of func(migration) string) (list []string) {
	for _, m := range v.steps {
		list = append(list, of(m))
	}
	return list
}

// refuseUpgrade returns an error if a database of that version, 0 for none, is older than this program, and opt does
// not permit its upgrade.
func refuseUpgrade(version int, opt Options) error {
	newest := opt.versions.newest()
	if !opt.KeepVersion || version == 0 || version >= newest {
		return nil
	}
	return fmt.Errorf("the database has version %d and this program works with version %d. Only the start of a server "+
		"upgrades it: start the server with this program, or run this command with the program that the server "+
		"has used", version, newest)
}

// NewestVersion returns the version of the databases that this program creates. It opens no
// newer one.
func NewestVersion() int { return knownVersions().newest() }
