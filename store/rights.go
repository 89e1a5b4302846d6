package store

// A Right is something that not every role may do.
type Right string

// The rights. What none of them names, every role may do: run the workers it sees,
// make workers, and change its own.
const (
	SeeEveryWorker     Right = "see every worker"     // private ones, too, and their tasks
	ManageKeys         Right = "manage keys"          // everybody's
	ManageMembers      Right = "manage members"       // invite, change roles, remove, reset passwords; not of owners
	ManageMail         Right = "manage mail"          // see all mail, release what is held
	DecideApprovals    Right = "decide on tool calls" // of workers of others
	SeeAudit           Right = "see the audit log"    //
	SeeUsage           Right = "see usage"            // of the whole organization
	ManageOwners       Right = "manage owners"        // all that ManageMembers is, of owners
	ManageOrganization Right = "manage organization"  // its name and its credit cap
	SeeSystem          Right = "see the system state" // of the whole server
)

// rights is the table of what each role may do; what it does not list is refused.
var rights = map[Role]map[Right]bool{
	RoleOwner: {
		SeeEveryWorker: true, ManageKeys: true, ManageMembers: true, ManageMail: true, DecideApprovals: true, SeeAudit: true, SeeUsage: true,
		ManageOwners: true, ManageOrganization: true, SeeSystem: true,
	},
	RoleAdmin: {
		SeeEveryWorker: true, ManageKeys: true, ManageMembers: true, ManageMail: true, DecideApprovals: true, SeeAudit: true, SeeUsage: true,
	},
	RoleMember: {},
}

// May reports whether the role has the right.
func (r Role) May(right Right) bool { return rights[r][right] }

// Allow is a Forbidden error where the caller's role lacks the right.
func (c Caller) Allow(right Right) error {
	if c.Role.May(right) {
		return nil
	}
	return Errorf(Forbidden, "the role %s may not %s", c.Role, right)
}
