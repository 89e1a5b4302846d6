package mailtext

import "strings"

// Unflow joins the lines of each paragraph of a text with format=flowed (RFC 3676). A line
// that ends with a space continues in the next one, if both are quoted equally deep.
func Unflow(s string, deleteSpace bool) string {
	var out strings.Builder
	open := -1 // quote depth of the paragraph that continues, or -1
	for line := range strings.SplitSeq(s, "\n") {
		depth := len(line) - len(strings.TrimLeft(line, ">"))
		rest := strings.TrimPrefix(line[depth:], " ")          // senders add it in front of some lines
		flows := strings.HasSuffix(rest, " ") && rest != "-- " // which begins a signature
		if open != depth || rest == "-- " {                    // a new paragraph begins
			if out.Len() > 0 || open >= 0 {
				out.WriteByte('\n')
			}
			if depth > 0 {
				out.WriteString(strings.Repeat(">", depth) + " ")
			}
		}
		if flows && deleteSpace {
			rest = strings.TrimSuffix(rest, " ")
		}
		out.WriteString(rest)
		if open = -1; flows {
			open = depth
		}
	}
	return out.String()
}
