package dashboard

// doneMessages say at the top of a page what the last form did. The address holds
// only the word, so that nobody can make a link that puts text on a page.
var doneMessages = map[string]string{
	"signed-out": "You are signed out.",
}
