package store

import _ "embed"

var (
	//go:embed migrations/2.sql
	toVersion2 string

	//go:embed migrations/3.sql
	toVersion3 string

	//go:embed migrations/4.sql
	toVersion4 string

	//go:embed migrations/4.postgres.sql
	toVersion4OnServer string

	//go:embed migrations/5.sql
	toVersion5 string

	//go:embed migrations/5.postgres.sql
	toVersion5OnServer string
)

// A migration upgrades a database by one version. SQLite and PostgreSQL declare tables in different
// ways, so each engine has its own script. A test checks that both lead to schema.sql.
type migration struct {
	file   string // for a database file
	server string // for a database on a PostgreSQL server; "" if no server has a database so old
}

// steps returns the migrations: step i upgrades version i+1 to i+2. schema.sql describes the newest
// version, which is one more than there are steps.
func steps() []migration {
	return []migration{{file: toVersion2}, {file: toVersion3}, {toVersion4, toVersion4OnServer},
		{toVersion5, toVersion5OnServer}}
}

// oldestProgram is the version of the oldest programs that work with the newest version of the
// tables. If it is not greater than the version before, nodes can be replaced one after the other.
// So a step that only adds tables, indexes and columns with defaults leaves it as it is. A step
// that removes something, or that older programs must know, sets it to the first version that
// allows for it. Programs older than version 5 do not support nodes.
const oldestProgram = 5

// migrations returns the scripts of steps for a database file.
func migrations() (list []string) {
	for _, m := range steps() {
		list = append(list, m.file)
	}
	return list
}

// serverMigrations returns the scripts of steps for a database on a server.
func serverMigrations() (list []string) {
	for _, m := range steps() {
		list = append(list, m.server)
	}
	return list
}

// NewestVersion returns the version of the databases that this program creates. It opens no
// newer one.
func NewestVersion() int { return len(steps()) + 1 }
