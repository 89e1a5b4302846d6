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
	kimiID     = regexp.MustCompile(`^functions(?:_(.+)_|([^_.:/].*?))\d+$`)
	// nameSpace matches a namespace before a name: functions. of gpt-oss, OpenAI's models and Kimi (openai/harmony,
	// tontinton/maki#518), default_api. and default_api: of Gemini (tya5/reyn#1989), mcp__ of Claude's clients, to= of a
	// header of harmony.
	nameSpace = regexp.MustCompile(`^(?:(?:functions?|tools?|default_api|namespace|api|google|mcp)(?:[./]|:{1,2})|` +
		`(?:mcp__|functions_|(?:assistant\s+)?to=))(.+)$`)
	// anySpace matches a namespace of any name before a name.
	anySpace = regexp.MustCompile(`^[A-Za-z_][\w.\-]*::(.+)$`)
	// nameServer matches the name of a server and of its tool. In the name of the offered tool, two underscores join
	// them.
	nameServer = regexp.MustCompile(`^([A-Za-z][\w\-]*)(?:[./]|:{1,2})([A-Za-z_][\w.\-]*)$`)
)

// Meant returns the offered tool that a model means by a name. Models and servers leave parts of a template's form in
// the names of calls, such as functions.write_file. A name that is offered itself means nothing else. Otherwise exactly
// one offered tool must remain when the known beginnings and ends are taken off. The tool of a server is one, too; no
// tool without the server is meant then, unless the server has the name of a known namespace.
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
		for _, shorter := range shorterForms(form, offered) {
			if !slices.Contains(forms, shorter) {
				forms = append(forms, shorter)
			}
		}
	}
	if meant == "" {
		return name, false
	}
	return meant, true
}

// shorterForms returns what remains of a name without one beginning or end.
func shorterForms(name string, offered func(string) bool) (forms []string) {
	patterns := []*regexp.Regexp{nameSuffix, kimiID, nameSpace, anySpace}
	if m := nameServer.FindStringSubmatch(name); m != nil && offered(m[1]+"__"+m[2]) {
		forms, patterns = append(forms, m[1]+"__"+m[2]), patterns[:3]
	}
	for _, p := range patterns {
		if m := p.FindStringSubmatch(name); m != nil {
			forms = append(forms, strings.Join(m[1:], "")) // one of them is empty
		}
	}
	return forms
}
