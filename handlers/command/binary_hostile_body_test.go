//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// mailAttacks returns mails that a naive parser would need much time for.
func mailAttacks() []attack {
	var list []attack
	n := 0
	for name, raw := range inOrder(hostileMails()) {
		raw = "To: victim\n" + raw
		if !strings.Contains("\n"+raw, "\nFrom:") {
			raw = "From: SENDER\n" + raw
		}
		way := (*victim).mail
		if n++; n%2 == 0 {
			way = (*victim).held
		}
		list = append(list, attack{"mail: " + name, func(h *victim) { way(h, raw) }})
	}
	return list
}

func hostileMails() map[string]string {
	r := strings.Repeat
	text := "Subject: x\nContent-Type: text/plain\n\n"
	mixed := "Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n"
	nested, rfc822 := "Content-Type: multipart/mixed; boundary=b0\n\n", ""
	for i := range 2000 {
		nested += fmt.Sprintf("--b%d\nContent-Type: multipart/mixed; boundary=b%d\n\n", i%10, (i+1)%10)
	}
	for range 500 {
		rfc822 += "Content-Type: message/rfc822\n\n"
	}
	folded := func(name, item string, times int) string { // in lines that SMTP carries
		return name + ": " + r(r(item, 10)+"\n ", times/10) + "x\n\nbody"
	}
	return map[string]string{
		"multiparts in multiparts": nested,
		"mails in mails":           rfc822 + "x",
		"many parts":               mixed + r("--b\n\nx\n", 50_000),
		"many pages": mixed +
			r("--b\nContent-Type: text/html\n\n<table><td colspan=999999 rowspan=999999>\n", 250),
		"many alternatives": "Content-Type: multipart/alternative; boundary=b\n\n" +
			r("--b\nContent-Type: text/html\n\n<p>x\n", 300),
		"many files":                 mixed + r("--b\nContent-Disposition: attachment; filename=a.txt\n\nx\n", 300),
		"boundaries like boundaries": mixed + r("--bb\n--b-\n-b\n", 20_000),
		"a boundary of nothing":      "Content-Type: multipart/mixed; boundary=\"\"\n\n" + r("--\n\n", 20_000),
		"a part that breaks off":     mixed + "--b\nContent-Transfer-Encoding: base64\n\nQUJ",
		"base64 of noise":            mixed + "--b\nContent-Transfer-Encoding: base64\n\n" + r("=?!@\n", 50_000),
		"quoted-printable of noise": mixed + "--b\nContent-Transfer-Encoding: quoted-printable\n\n" + r("==\n=\n=X",
			40_000),
		"encodings in a row":       r("Content-Transfer-Encoding: base64\n", 2000) + "\nQUJD",
		"an encoding that is none": "Content-Transfer-Encoding: x-uuencode\n\n" + r("begin 644 a\n", 5000),
		"a subject of a megabyte":  folded("Subject", "=?utf-8?q?a?= ", 80_000),
		"words in charsets":        folded("Subject", "=?iso-2022-jp?b?GyRC?= =?utf-7?q?+?= ", 4000),
		"references of a megabyte": folded("References", "<a@b> ", 150_000),
		"authors of a megabyte":    folded("From", "a@b, ", 50_000),
		"comments in comments":     folded("From", "((((((", 20_000),
		"quotes in an author":      folded("From", `"\"`, 20_000),
		"groups of authors":        folded("From", "a:b@c;", 20_000),
		"literal domains":          "From: a@[" + r("1.", 5000) + "]\n\nx",
		"parameters":               "Content-Type: text/plain" + r("; a*1*=x\n ", 20_000) + "\n\nx",
		"numbered parameters":      "Content-Type: text/plain" + r("; a*999999999*=%41\n ", 10_000) + "\n\nx",
		"a name in pieces": mixed + "--b\nContent-Disposition: attachment" +
			r("; filename*0*=utf-8''%C3\n ", 5000) + "\n\nx\n--b--",
		"a name that leads out": mixed + "--b\nContent-Disposition: attachment; filename=\"" + r("../", 3000) +
			"etc/passwd\"\n\nx\n--b--",
		"many fields":          r("X-A: b\n", 100_000) + "\nx",
		"fields without names": r(": x\n", 50_000) + "\nx",
		"fields that go on":    "X-A: b\n" + r(" c\n", 100_000) + "\nx",
		"received everywhere": r("Received: from a (b [1.2.3.4]) by c; Sat, 21 Nov 2026 09:30:00 +0000\n",
			3000) + "\nx",
		"signatures":            r("DKIM-Signature: v=1; a=rsa-sha256; d=invalid; s=a; bh=QQ==; b=QQ==; h=from\n", 500) + "\nx",
		"dates":                 "Date: " + r("1", 15_000) + "\n\nx",
		"flowed lines":          "Content-Type: text/plain; format=flowed; delsp=yes\n\n" + r("> a \n", 60_000),
		"a million spaces":      text + r(r(" ", 15_000)+"\n", 60) + "x",
		"quoted lines":          text + r("> a\nb\n", 50_000),
		"header blocks":         text + r("From: a\n", 30_000),
		"attributions":          text + r("On 1 a@b wrote:\n>\n", 20_000),
		"attributions in a row": text + r(r("On 1 a@b wrote ", 30)+"\n", 500),
		"forwards": "Subject: " + r("Fwd: ", 2000) + "\n\n" +
			r("---------- Forwarded message ---------\n", 5000),
		"signatures of mail programs": text + "x\n" + r("Sent from my iPhone\n", 10_000),
		"delimiters":                  text + r("--\n", 80_000),
		"a calendar": "Content-Type: text/calendar; method=" + r("A", 5000) + "\n\n" +
			r("BEGIN:VCALENDAR\n", 10_000),
		"a Microsoft bundle": "Content-Type: application/ms-tnef; name=winmail.dat\n\n" +
			r("\x78\x9f\x3e\x22\n", 5000),
		"a bounce of nothing": "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\n" +
			r("Diagnostic-Code: smtp; 550\n", 10_000),
		"nothing at all": "\n",
	}
}

// bodyAttacks returns requests: JSON and forms.
func bodyAttacks() []attack {
	var list []attack
	for name, body := range inOrder(hostileJSON()) {
		list = append(list, attack{"JSON: " + name, func(h *victim) { h.asJSON([]byte(body)) }})
	}
	for name, form := range inOrder(hostileForms()) {
		list = append(list, attack{"form: " + name,
			func(h *victim) { h.upload("multipart/form-data; boundary="+form[0], []byte(form[1])) }})
	}
	return list
}

func hostileJSON() map[string]string {
	r := strings.Repeat
	task := func(more string) string { return `{"input":"x"` + more + `}` }
	return map[string]string{
		"arrays in arrays":       r("[", 500_000),
		"objects in objects":     r(`{"a":`, 200_000),
		"objects closed again":   task(`,"a":` + r(`{"a":`, 9000) + "1" + r("}", 9000)),
		"a key again and again":  task(r(`,"input":"y"`, 60_000)),
		"keys":                   task(counted(`,"k%d":1`, 60_000)),
		"a long key":             task(`,"` + r("k", 900_000) + `":1`),
		"a number without end":   task(`,"budget":` + r("9", 900_000)),
		"a huge number":          task(`,"wait":1e999999999`),
		"a tiny number":          task(`,"wait":-1e-999999999`),
		"a long input":           `{"input":"` + r("x", 1_000_000) + `"}`,
		"an input of escapes":    `{"input":"` + r(`\u0001`, 150_000) + `"}`,
		"lone surrogates":        `{"input":"` + r(`\ud800`, 150_000) + `"}`,
		"an input of brackets":   `{"input":"` + r("[", 200_000) + `"}`,
		"an input of stars":      `{"input":"` + r("*a_ ", 60_000) + `"}`,
		"an input of addresses":  `{"input":"` + r("http://a.invalid/ ", 20_000) + `"}`,
		"an input of file names": `{"input":"` + r("save to a.txt ", 30_000) + `"}`,
		"an input of sentences":  `{"input":"` + r("This is. Dr. No! Why? 1.5 a.m. ", 20_000) + `"}`,
		"an input of script":     `{"input":"` + "```offline\\n" + r("say x\\n", 20_000) + "```" + `"}`,
		"an input that repeats": `{"input":"` + "```offline\\nrepeat 999999999\\nsay " + r("x", 1000) + "\\n```" +
			`"}`,
		"an input that doubles": `{"input":"` + "```offline\\n" + r("say {{input}}{{last}}\\n", 5000) + "```" +
			r("y", 100_000) + `"}`,
		"not UTF-8":               "{\"input\":\"" + r("\xff", 200_000) + "\"}",
		"UTF-16":                  r("{\x00\"\x00", 100_000),
		"white space":             r(" ", 900_000) + task(""),
		"something after its end": task("") + r("}", 500_000),
		"a title of zeros":        task(`,"title":"` + r(`\u0000`, 10_000) + `"`),
		"an unknown task":         task(`,"taskId":"` + r("../", 100_000) + `"`),
		"too much":                `{"input":"` + r("x", 5_000_000) + `"}`,
		"cut":                     `{"input":"` + r("x", 100_000),
	}
}

// counted returns format with 0, 1, 2 ..., joined.
func counted(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// hostileForms returns a boundary and a body each.
func hostileForms() map[string][2]string {
	r := strings.Repeat
	field := "--b\r\nContent-Disposition: form-data; name=input\r\n\r\nx\r\n"
	file := func(name, content string) string {
		return "--b\r\nContent-Disposition: form-data; name=f; filename=\"" + name + "\"\r\n\r\n" + content + "\r\n"
	}
	end := "--b--\r\n"
	return map[string][2]string{
		"no parts":            {"b", end},
		"no end":              {"b", field},
		"no boundary":         {"", field + end},
		"another boundary":    {"c", field + end},
		"a long boundary":     {r("b", 60), r("--"+r("b", 60)+"\r\n", 20_000)},
		"boundaries in a row": {"b", r("--b\r\n", 100_000)},
		"almost boundaries":   {"b", field + file("a", r("\r\n--", 200_000)) + end},
		"many fields": {"b", field + r("--b\r\nContent-Disposition: form-data; name=title\r\n\r\nx\r\n",
			20_000) + end},
		"many files":            {"b", field + r(file("a.txt", "x"), 500) + end},
		"files of one name":     {"b", field + r(file("a.txt", "x"), 19) + end},
		"many lines in a head":  {"b", "--b\r\n" + r("X-A: b\r\n", 100_000) + "\r\nx\r\n" + end},
		"a long line in a head": {"b", "--b\r\nX-A: " + r("b", 2_000_000) + "\r\n\r\nx\r\n" + end},
		"a name that leads out": {"b", field + file(r("../", 1000)+"etc/passwd", "x") + end},
		"a name of a megabyte":  {"b", field + file(r("n", 1_000_000), "x") + end},
		"a name of zeros":       {"b", field + file("\x00\x01\xff", "x") + end},
		"a name in pieces": {"b", field + "--b\r\nContent-Disposition: form-data; name=f" +
			r("; filename*0*=utf-8''%C3", 5000) + "\r\n\r\nx\r\n" + end},
		"a form in a form": {"b",
			"--b\r\nContent-Disposition: form-data; name=f\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" +
				r("--c\r\n\r\n", 20_000) + end},
		"an encoded part": {"b",
			"--b\r\nContent-Disposition: form-data; name=input\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + r("=\r\n", 200_000) + "\r\n" + end},
		"a file of ten megabytes": {"b", field + file("a.bin", r("x", 10_000_000)) + end},
		"a field too long": {"b", "--b\r\nContent-Disposition: form-data; name=input\r\n\r\n" + r("x",
			5_000_000) + "\r\n" + end},
		"text before": {"b", r("preamble\r\n", 200_000) + field + end},
		"text behind": {"b", field + end + r("epilogue\r\n", 200_000)},
	}
}

// schemaAttacks returns workers with a schema, each with one task.
func schemaAttacks() []attack {
	var list []attack
	for name, schema := range inOrder(hostileSchemas()) {
		list = append(list, attack{"schema: " + name, func(h *victim) {
			body := `{"title":"x","instructions":"x","outputSchema":` + schema + `}`
			a, err := h.send(h.t.Context(), http.MethodPost, "/api/workers", strings.NewReader(body), "Content-Type",
				"application/json")
			h.answered(a, err)
			var v seenRun
			if a.status != http.StatusOK || json.Unmarshal(a.body, &v) != nil {
				return
			}
			a, err = h.post(h.t.Context(), "/api/workers/"+v.ID, map[string]any{"input": strings.Repeat("a", 200) + "!"},
				"Prefer", "wait=20")
			h.answered(a, err)
			if json.Unmarshal(a.body, &v) == nil && v.Running {
				a, err = h.post(h.t.Context(), "/api/tasks/"+url.PathEscape(v.Metadata.TaskID)+"/cancel", nil)
				h.answered(a, err)
			}
		}})
	}
	return list
}

func hostileSchemas() map[string]string {
	r := strings.Repeat
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	double := func(kind string, levels int) string { // each level is the next one twice
		var b strings.Builder
		fmt.Fprintf(&b, `{"$ref":"#/definitions/a0","definitions":{`)
		for i := range levels {
			fmt.Fprintf(&b, `"a%d":{"%s":[{"$ref":"#/definitions/a%d"},{"$ref":"#/definitions/a%d"}]},`, i, kind, i+1,
				i+1)
		}
		fmt.Fprintf(&b, `"a%d":{"type":"object"}}}`, levels)
		return b.String()
	}
	list := map[string]string{
		"allOf that doubles": double("allOf", 30),
		"anyOf that doubles": double("anyOf", 30),
		"oneOf that doubles": double("oneOf", 30),
		"properties that double": `{"$ref":"#/definitions/a0","definitions":{` +
			countedNext(`"a%d":{"type":"object","required":["l","r"],"properties":{"l":{"$ref":"#/definitions/a%d"},"r":{"$ref":"#/definitions/a%d"}}},`, 30) + `"a30":{"type":"string"}}}`,
		"items that double": `{"$ref":"#/definitions/a0","definitions":{` +
			countedNext(`"a%d":{"type":"array","minItems":9,"items":[{"$ref":"#/definitions/a%d"},{"$ref":"#/definitions/a%d"}]},`, 30) + `"a30":{"type":"string"}}}`,
		"not of not":                r(`{"not":`, 2000) + "{}" + r("}", 2000),
		"a few nots":                r(`{"not":`, 51) + `{"type":"object"}` + r("}", 51),
		"allOf of allOf":            r(`{"allOf":[`, 1500) + "{}" + r("]}", 1500),
		"a reference to itself":     `{"$ref":"#"}`,
		"references in a circle":    `{"$ref":"#/definitions/a","definitions":{"a":{"$ref":"#/definitions/b"},"b":{"$ref":"#/definitions/a"}}}`,
		"an object in itself":       object(`"a":{"$ref":"#"}`),
		"an object that needs it":   `{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		"a reference elsewhere":     `{"$ref":"http://127.0.0.1:1/schema.json"}`,
		"a reference to a file":     `{"$ref":"file:///etc/passwd"}`,
		"a reference too long":      `{"$ref":"#` + r("/a", 100_000) + `"}`,
		"ids":                       object(counted(`"p%d":{"$id":"http://x/%[1]d"},`, 3000) + `"z":{}`),
		"a pattern that backtracks": object(`"a":{"type":"string","pattern":"^(a+)+$"}`),
		"a pattern of alternatives": object(`"a":{"type":"string","pattern":"^(a|a|a|a)*b$"}`),
		"a pattern that repeats":    object(`"a":{"type":"string","pattern":"((a{1000}){1000}){1000}"}`),
		"a pattern that looks ahead": object(`"a":{"type":"string","pattern":"^(?=(a+)+$)(?!b)` + r("(a?)", 30) +
			`a{30}$"}`),
		"a pattern that looks back": object(`"a":{"type":"string","pattern":"(?<=(a*)*)b\\1"}`),
		"a long pattern":            object(`"a":{"type":"string","pattern":"` + r("(a|b)?", 20_000) + `"}`),
		"deep groups":               object(`"a":{"type":"string","pattern":"` + r("(", 1000) + r(")", 1000) + `"}`),
		"many patterns": `{"type":"object","patternProperties":{` + counted(`"^a%d(b+)+$":{},`, 2000) +
			`"z":{}}}`,
		"an enumeration":         object(`"a":{"enum":[` + counted("%d,", 60_000) + `"x"]}`),
		"equal things":           object(`"a":{"uniqueItems":true,"const":[` + r("{},", 60_000) + `1]}`),
		"properties":             object(counted(`"p%d":{"type":"string"},`, 10_000) + `"z":{}`),
		"required ones":          `{"type":"object","required":[` + counted(`"p%d",`, 30_000) + `"z"]}`,
		"a string of gigabytes":  `{"type":"object","required":["a"],"properties":{"a":{"type":"string","minLength":2147483647}}}`,
		"a list of billions":     `{"type":"object","required":["a"],"properties":{"a":{"type":"array","minItems":2147483647,"items":{"type":"string"}}}}`,
		"billions of properties": `{"type":"object","minProperties":2147483647}`,
		"a number too large":     `{"type":"object","required":["a"],"properties":{"a":{"type":"number","minimum":1e400}}}`,
		"a divisor too small":    `{"type":"object","required":["a"],"properties":{"a":{"type":"number","multipleOf":1e-300,"minimum":1e300}}}`,
		"huge exponents":         object(`"a":{"const":1e1000000000}`),
		"conditions":             r(`{"if":{},"then":`, 1000) + "{}" + r("}", 1000),
		"dependencies": `{"type":"object","dependencies":{` + counted(`"a%d":["b"],`, 10_000) +
			`"z":["a0"]}}`,
		"a title of a megabyte": `{"type":"object","title":"` + r("x", 900_000) + `"}`,
		"names of properties": `{"type":"object","propertyNames":` + r(`{"not":`, 500) + "{}" + r("}", 500) +
			`}`,
		"formats": object(counted(`"p%d":{"type":"string","format":"regex","default":"(a+)+"},`,
			2000) + `"z":{}`),
	}
	return list
}

// countedNext returns format with i, i+1 and i+1 for each i, joined.
func countedNext(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i, i+1, i+1)
	}
	return b.String()
}

// answerAttacks makes workers answer with Markdown that grows when it is rendered. The answer is
// mailed, and the Owner opens its task.
func answerAttacks() []attack {
	r := strings.Repeat
	var list []attack
	for name, lines := range inOrder(map[string][]string{
		"a table that swells": append([]string{r("a|", 4000), r("-|", 4000)}, strings.Fields(r("a ", 4000))...),
		"quotes":              {r(">", 15_000) + "a"},
		"lists":               {r("* ", 15_000) + "a"},
		"emphasis":            {r("*a_ ", 8000)},
		"much emphasis":       strings.Split(r(r("*a_ ", 1000)+"\n", 60), "\n"),
		"links":               {r("[a](b", 6000)},
		"pictures":            {r("![[]()", 5000)},
		"HTML":                {r("<a <!-- <![CDATA[", 2000)},
	}) {
		script := make([]string, 0, len(lines))
		for _, line := range lines {
			if line != "" {
				script = append(script, "say "+line)
			}
		}
		input := offlineScript(script...)
		list = append(list, attack{"answer: " + name, func(h *victim) {
			h.mail(asMail("text/plain", []byte(input)))
			a, err := h.post(h.t.Context(), "/api/tasks", map[string]any{"input": input})
			h.answered(a, err)
			var v seenRun
			if json.Unmarshal(a.body, &v) == nil && v.Metadata.TaskID != "" {
				h.look("/tasks/" + url.PathEscape(v.Metadata.TaskID))
			}
		}})
	}
	return list
}
