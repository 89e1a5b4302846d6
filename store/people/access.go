package people

import "journeyman/store/db"

// A Role is what a member may do in an organization.
type Role string

// The roles. An Owner or Admin sees every worker of the organization and manages
// its keys. A Member sees public workers, their own, and those they are invited to.
const (
	RoleOwner  Role = "owner"
	RoleAdmin  Role = "admin"
	RoleMember Role = "member"
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == RoleOwner || r == RoleAdmin || r == RoleMember }

// A Right permits an action that not every role may take.
type Right string

// The rights. Every role may take the actions without a right of their own: run the workers
// that it sees, create workers, and change its own workers.
const (
	SeeEveryWorker     Right = "see every worker"     // private ones, too, and their tasks
	ManageKeys         Right = "manage keys"          // those of every member
	ManageMembers      Right = "manage members"       // invite, change roles, remove, reset passwords; not of owners
	ManageMail         Right = "manage mail"          // see all mail, release held mail
	DecideApprovals    Right = "decide on tool calls" // of workers that another member created
	SeeAudit           Right = "see the audit log"
	SeeUsage           Right = "see usage"           // of the whole organization
	ManageOwners       Right = "manage owners"       // as ManageMembers, but of owners
	ManageOrganization Right = "manage organization" // its name and its credit cap
	ManageSecrets      Right = "manage secrets"      // those of every worker of the organization
	ManageProviders    Right = "manage models"       // connect providers, and choose the default models
	SeeProviders       Right = "see model providers" // their names and states, never a key
	ManageAlerts       Right = "manage alerts"       // where the organization's alerts go

	// ManageServer is the right of the server's owner, for everything that concerns the whole server or several
	// organizations: the page System, backups, checks, and the sign-in to MCP servers. The server's owner
	// is every Owner of the first organization, which the first start made. An Owner of another
	// organization, or an owner of the server who acts in another organization, does not have it.
	ManageServer Right = "manage the server"
)

// May reports whether the role has the right in its organization. An unknown role has none. Caller.May decides, because
// the rights of a role depend on the organization, too.
func (r Role) May(right Right) bool {
	switch right {
	case ManageOwners, ManageOrganization, ManageProviders, ManageServer:
		return r == RoleOwner
	case SeeEveryWorker, ManageKeys, ManageMembers, ManageMail, ManageSecrets, ManageAlerts, DecideApprovals, SeeAudit,
		SeeUsage, SeeProviders:
		return r == RoleOwner || r == RoleAdmin
	}
	return false
}

// Manages reports whether the role sees every worker.
func (r Role) Manages() bool { return r.May(SeeEveryWorker) }

// A Trigger is the way by which a task was started.
type Trigger string

// The triggers of the interface.
const (
	TriggerAPI      Trigger = "api"
	TriggerEmail    Trigger = "email"
	TriggerSchedule Trigger = "schedule"
	TriggerUI       Trigger = "ui"
)

// Valid reports whether t is one of the triggers.
func (t Trigger) Valid() bool {
	return t == TriggerAPI || t == TriggerEmail || t == TriggerSchedule || t == TriggerUI
}

// A Caller is the user on whose behalf a method of the store acts, in one organization.
// Every access rule reads it, and none checks who the user is. Authenticate,
// AuthenticateMCP, SessionIdentity, CheckPassword and Operator return verified callers.
type Caller struct {
	OrganizationID string
	UserID         string // '' for a stranger: a sender of mail who is not a member
	Role           Role
	KeyID          string // '' without a key
	Trigger        Trigger
	RemoteAddr     string // for the audit log

	operator bool // set by Operator alone

	// first reports whether the organization is the first of the server. Only the methods that verify a
	// caller set it, so a Caller that was made in another way does not have ManageServer.
	first bool
}

// Operator returns the caller of commands that work on the data folder itself. A person who
// may read the folder could change every row, so this caller has every right in every
// organization.
func Operator() Caller { return Caller{operator: true} }

// IsOperator reports whether the caller was made by Operator.
func (c Caller) IsOperator() bool { return c.operator }

// Stranger reports whether the caller is not a member of the organization.
func (c Caller) Stranger() bool { return c.UserID == "" }

// Allow returns a Forbidden error if the caller's role lacks the right.
func (c Caller) Allow(right Right) error {
	switch {
	case c.May(right):
		return nil
	case right == ManageServer && c.Role.May(right):
		return db.Errorf(db.Forbidden, "only an Owner of the first organization of this server may %s", right)
	}
	return db.Errorf(db.Forbidden, "the role %s may not %s", c.Role, right)
}

// May reports whether the caller has the right.
func (c Caller) May(right Right) bool {
	return c.operator || c.Role.May(right) && (right != ManageServer || c.first)
}

// An Identity is a Caller with the names that people know it by.
type Identity struct {
	Caller
	OrganizationName string
	Email            string
	UserName         string
	KeyName          string
	KeyPrefix        string
	Preferences      // of a user who is signed in to the pages
}

// Preferences are the settings of the pages that a user has chosen.
type Preferences struct {
	Theme     string // "light", "dark", or '' to follow the system
	Language  string // a code such as "de", or '' to follow the browser
	Shortcuts bool   // whether the pages take keyboard shortcuts
}
