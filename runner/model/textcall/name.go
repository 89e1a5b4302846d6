package textcall

import (
	"regexp"
	"slices"
	"strings"
)

// Limits of a name that is compared with the offered tools.
const (
	maxName  = 200 // bytes
	maxForms = 32
)

var (
	// nameToken matches what the special tokens of a chat template add to a name: write_file<|channel|>commentary of
	// gpt-oss (vllm-project/vllm#32587), write_file[ARGS] of Mistral.
	nameToken = regexp.MustCompile(`(?:<[|｜/]|<arg_key>|\[(?:ARGS|CALL_ID)\]).*$`)
	// nameSuffix matches the end of a name that is no part of it: functions.write_file:0, the id of Kimi K2, also as
	// functions_write_file_0 (exo-explore/exo#2281) and functionswrite_file0 (sgl-project/sglang#21377);
	// write_file.call of Llama; write_file().
	nameSuffix = regexp.MustCompile(`^(.+?)(?::\d+|\.call|\(\))$`)
	kimiID     = regexp.MustCompile(`^functions[._]?(.+?)[:_]?\d+$`)
	// nameSpace matches a namespace before a name: functions. of gpt-oss, OpenAI's models and Kimi (openai/harmony,
	// tontinton/maki#518), default_api. and default_api: of Gemini (tya5/reyn#1989), mcp__ of Claude's clients, to= of a
	// header of harmony. Two colons separate any namespace.
	nameSpace = regexp.MustCompile(`^(?:(?:functions?|tools?|default_api|namespace|api|google|mcp)(?:[./]|:{1,2})|` +
		`(?:mcp__|functions_|(?:assistant\s+)?to=)|[A-Za-z_][\w.\-]*::)(.+)$`)
	// nameServer matches the name of a server and of its tool, which are joined by two underscores.
	nameServer = regexp.MustCompile(`^([A-Za-z][\w\-]*)(?:[./]|:{1,2})([A-Za-z_][\w.\-]*)$`)
)

// Meant returns the offered tool that a model means by a name. Models and servers leave parts of a template's form in
// the names of calls, such as functions.write_file. A name that is offered itself means nothing else. Otherwise exactly
// one offered tool must remain when the known beginnings and ends are taken off.
func Meant(name string, offered func(string) bool) (_ string, ok bool) {
	if offered(name) {
		return name, true
	}
	if len(name) > maxName {
		return name, false
	}
	meant := ""
	forms := []string{strings.Trim(nameToken.ReplaceAllString(name, ""), " \t\r\n\"'`")}
	for i := 0; i < min(len(forms), maxForms); i++ {
		form := forms[i]
		if offered(form) && meant != form {
			if meant != "" {
				return name, false
			}
			meant = form
		}
		for _, p := range []*regexp.Regexp{nameSuffix, kimiID, nameSpace} {
			if m := p.FindStringSubmatch(form); m != nil && !slices.Contains(forms, m[1]) {
				forms = append(forms, m[1])
			}
		}
		if m := nameServer.FindStringSubmatch(form); m != nil && offered(m[1]+"__"+m[2]) {
			return m[1] + "__" + m[2], true
		}
	}
	if meant == "" {
		return name, false
	}
	return meant, true
}
