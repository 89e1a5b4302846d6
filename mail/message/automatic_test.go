package message

import (
	"fmt"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// deliveryReport returns a delivery report with the fields of each recipient, and the id of a mail that it quotes.
func deliveryReport(subject string, recipients ...string) string {
	return "From: MAILER-DAEMON@mx.example.com\r\nSubject: " + subject + "\r\n" +
		"Content-Type: multipart/report; report-type=delivery-status; boundary=b\r\n\r\n--b\r\n\r\nAbout your mail.\r\n" +
		"--b\r\nContent-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.example.com\r\n\r\n" +
		strings.Join(recipients, "\r\n\r\n") + "\r\n\r\n--b\r\nContent-Type: text/rfc822-headers\r\n\r\n" +
		"Message-ID: <msg_9@workers.example>\r\n--b--\r\n"
}

// TestDeliveryReports checks which reports say that a mail was not delivered.
func TestDeliveryReports(t *testing.T) {
	t.Parallel()
	status := func(action, code string) string {
		return "Final-Recipient: rfc822; ann@example.com\r\nAction: " + action + "\r\nStatus: " + code +
			"\r\nDiagnostic-Code: smtp; " + code + " said\r\n so"
	}
	plain := func(from, subject string) string {
		return "From: " + from + "\r\nSubject: " + subject + "\r\n\r\ntext\r\n"
	}
	for name, tt := range map[string]struct{ raw, kind, reason string }{
		"failed":              {deliveryReport("x", status("failed", "5.1.1")), AutoBounce, "5.1.1 said so"},
		"Failed (comment)":    {deliveryReport("x", status("Failed (bad)", "5.1.1")), AutoBounce, "5.1.1 said so"},
		"delayed":             {deliveryReport("Undelivered Mail", status("delayed", "4.4.1")), AutoReport, ""},
		"delivered":           {deliveryReport("Undelivered Mail", status("delivered", "2.0.0")), AutoReport, ""},
		"relayed":             {deliveryReport("x", status("relayed", "2.0.0")), AutoReport, ""},
		"expanded":            {deliveryReport("x", status("EXPANDED", "2.0.0")), AutoReport, ""},
		"one of two":          {deliveryReport("x", status("delivered", "2.0.0"), status("failed", "5.2.2")), AutoBounce, "5.2.2 said so"},
		"none of two":         {deliveryReport("x", status("delayed", "4.0.0"), status("relayed", "2.0.0")), AutoReport, ""},
		"no action, a class":  {deliveryReport("x", "Final-Recipient: rfc822; x\r\nStatus: 5.0.0"), AutoBounce, "x"},
		"no action, no class": {deliveryReport("x", "Final-Recipient: rfc822; x\r\nStatus: 4.0.0"), AutoReport, ""},
		"base64": {strings.Replace(deliveryReport("x", "X"), "delivery-status\r\n\r\nReporting-MTA: dns; mx.example.com\r\n\r\nX",
			"delivery-status\r\nContent-Transfer-Encoding: base64\r\n\r\nQWN0aW9uOiBkZWxheWVkClN0YXR1czogNC4wLjAK", 1), AutoReport, ""},
		"failed recipients of a late mail": {"X-Failed-Recipients: x@y\r\n" + deliveryReport("x", status("delayed", "4.0.0")), AutoReport, ""},
		"a complaint": {"From: fbl@example.com\r\nSubject: Undeliverable\r\nContent-Type: multipart/report; report-type=feedback-report; boundary=b\r\n\r\n--b--\r\n",
			AutoReport, ""},
		"Report-Type": {strings.Replace(deliveryReport("Undeliverable", "Final-Recipient: rfc822; x"), "delivery-status;", "Disposition-Notification;", 1),
			AutoReply, ""},
		"plain, success":        {plain("mailer-daemon@x.example", "Delivery Status Notification (Success)"), AutoReport, ""},
		"plain, relay":          {plain("mailer-daemon@x.example", "Delivery Status Notification (Relay)"), AutoReport, ""},
		"plain, expanded":       {plain("postmaster@x.example", "Delivery Status Notification (Expanded)"), AutoReport, ""},
		"plain, failure":        {plain("postmaster@x.example", "Delivery Status Notification (Failure)"), AutoBounce, "Delivery Status Notification (Failure)"},
		"plain, failed":         {plain("MAILER-DAEMON@x.example", "failure notice"), AutoBounce, "failure notice"},
		"plain, unknown":        {plain("MAILER-DAEMON@x.example", "Hello"), AutoBounce, "Hello"},
		"plain, late":           {plain("MAILER-DAEMON@x.example", "Warning: could not send message for past 4 hours"), AutoReport, ""},
		"plain, late (exim)":    {plain("Mailer-Daemon@x.example", "Warning: message 1a-b delayed 24 hours"), AutoReport, ""},
		"plain, late (google)":  {plain("mailer-daemon@x.example", "Delivery Status Notification (Delay)"), AutoReport, ""},
		"plain, late (german)":  {plain("postmaster@x.example", "Zustellung verzögert: Zahlen"), AutoReport, ""},
		"plain, arrived":        {plain("mailer-daemon@x.example", "Successful Mail Delivery Report"), AutoReport, ""},
		"plain, arrived (exch)": {plain("postmaster@x.example", "Relayed: Numbers"), AutoReport, ""},
		"plain, failed (exch)":  {plain("postmaster@x.example", "Unzustellbar: Zahlen"), AutoBounce, "Unzustellbar: Zahlen"},
		"postmaster in person":  {plain("postmaster@x.example", "Numbers"), "", ""},
		"postmaster, late":      {plain("postmaster@x.example", "The delay of our success story"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			h := ReadHeader([]byte(tt.raw))
			is.Equal(h.Automatic, tt.kind)
			if tt.kind == AutoBounce {
				is.Equal(BounceReason(h, []byte(tt.raw)), tt.reason)
			}
		})
	}
}

// TestAutomaticReplies reads replies of programs that know nothing of RFC 3834, and mail of people that looks
// like them.
func TestAutomaticReplies(t *testing.T) {
	t.Parallel()
	const ann, nobody = "ann@example.com", "no-reply@example.com"
	for name, tt := range map[string]struct{ sender, from, fields, kind string }{
		"X-Autogenerated":        {ann, ann, "X-Autogenerated: Reply", AutoReply},
		"X-AutoReply-From":       {ann, ann, "X-AutoReply-From: x@example.com", AutoReply},
		"X-Vacation":             {ann, ann, "X-Vacation: yes", AutoReply},
		"X-MDAutoResponder":      {ann, ann, "X-MDAutoResponder: 1", AutoReply},
		"X-FC-MachineGenerated":  {ann, ann, "X-FC-MachineGenerated: true", AutoReply},
		"X-POST-MessageClass":    {ann, ann, "X-POST-MessageClass: 9; Autoresponder", AutoReply},
		"Delivered-To":           {ann, ann, "Delivered-To: Autoresponder", AutoReply},
		"auto-reply":             {ann, ann, "Precedence: auto-reply", AutoReply},
		"auto_reply":             {ann, ann, "Precedence: auto_reply", AutoReply},
		"X-Precedence":           {ann, ann, "X-Precedence: Auto_Reply", AutoReply},
		"a word that means no":   {ann, ann, "X-Autogenerated: no", ""},
		"suppressed":             {ann, ann, "X-AutoReply-Suppress: yes", ""},
		"null":                   {"", ann, "Subject: Re: Numbers", AutoReply},
		"null, a report":         {"", ann, "Subject: Mail delivery failed: returning message to sender", AutoBounce},
		"null, a late one":       {"", ann, "Subject: Delivery delayed: Numbers", AutoReport},
		"Return-Path":            {ann, ann, "Return-Path: <>\r\nSubject: Numbers", AutoReply},
		"English":                {nobody, ann, "Subject: Out of Office: Numbers", AutoReply},
		"noreply author":         {ann, "DoNotReply@example.com", "Subject: Automatic reply: Numbers", AutoReply},
		"Lotus":                  {nobody, ann, "Subject: AUTO: Ann Example is out of the office (returning 01/05/2026)", AutoReply},
		"Lotus, old":             {nobody, ann, "Subject: Ann Example is out of the office.", AutoReply},
		"German":                 {nobody, ann, "Subject: Abwesenheitsnotiz: Zahlen", AutoReply},
		"GMX":                    {nobody, ann, "Subject: Automatische Antwort: Zahlen", AutoReply},
		"French":                 {nobody, ann, "Subject: =?utf-8?q?R=C3=A9ponse_automatique_=3A_chiffres?=", AutoReply},
		"Spanish":                {nobody, ann, "Subject: Fuera de la oficina", AutoReply},
		"Czech":                  {nobody, ann, "Subject: Automatická odpověď: čísla", AutoReply},
		"Greek":                  {nobody, ann, "Subject: Αυτόματη απάντηση: αριθμοί", AutoReply},
		"Arabic":                 {nobody, ann, "Subject: رد تلقائي: أرقام", AutoReply},
		"Japanese":               {nobody, ann, "Subject: 自動応答: 数字", AutoReply},
		"Korean":                 {nobody, ann, "Subject: 자동 회신: 숫자", AutoReply},
		"Turkish":                {nobody, ann, "Subject: Otomatik yanıt: sayılar", AutoReply},
		"an answer in a thread":  {ann, ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Out of Office: Numbers", AutoReply},
		"a plan in an answer":    {ann, ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Urlaub: Planung 2027", ""},
		"days in an answer":      {ann, ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Vacation - 3 to 7 May", ""},
		"who is away":            {ann, ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Bob is on vacation, who takes his tickets?", ""},
		"a program says it":      {nobody, ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Vacation - 3 to 7 May", AutoReply},
		"a null sender says it":  {"", ann, "In-Reply-To: <msg_1@w.example>\r\nSubject: Urlaub: bis 7. Mai", AutoReply},
		"a plan of a person":     {ann, ann, "Subject: Out of Office: please make a plan", ""},
		"a notice of a program":  {nobody, nobody, "Subject: Absence request of Ann", ""},
		"another of a program":   {nobody, nobody, "Subject: Your invoice 4711", ""},
		"a reply about absence":  {ann, ann, "In-Reply-To: <1@b.example>\r\nSubject: Re: Out of Office: Numbers", ""},
		"a number in the author": {ann, "system@example.com", "Subject: Numbers", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := ReadHeader([]byte("From: Ann <" + tt.from + ">\r\n" + tt.fields + "\r\n\r\nI am away.\r\n"))
			h.SentBy(tt.sender)
			is.New(t).Equal(h.Automatic, tt.kind)
		})
	}
}

// TestReactions reads reactions of Gmail and Outlook, and answers of people that look like them.
func TestReactions(t *testing.T) {
	t.Parallel()
	alternative := func(plain, other, html string) string {
		return "Content-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + plain +
			"\r\n" + other + "--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html + "\r\n--b--\r\n"
	}
	outlook := func(words string) string {
		return alternative("[👍] "+words+"\r\n________________________________\r\nFrom: Scribe <w@workers.example>\r\n"+
			"Sent: Monday\r\nTo: Ann\r\nSubject: Numbers\r\n\r\n12\r\n", "",
			fmt.Sprintf("<table><tr><td><img alt=0></td><td><span>%s</span></td></tr></table><hr><div><b>From:</b> Scribe</div>", words))
	}
	outlookText := func(words string) string {
		return "Content-Type: text/plain; charset=utf-8\r\n\r\n" + words + "\r\n\r\n________________________________\r\n" +
			"From: Scribe <w@workers.example>\r\nSent: Monday\r\nTo: Ann\r\nSubject: Numbers\r\n\r\n12\r\n"
	}
	onlyHTML := func(words string) string {
		return "Content-Type: text/html; charset=utf-8\r\n\r\n<table><tr><td><img alt=0 src=x></td><td><span style=\"font-weight:bold\">Ann Example</span> <span>" +
			words + "</span></td></tr></table><hr><div id=divRplyFwdMsg><b>Von:</b> Scribe &lt;w@x.example&gt;<br><b>Gesendet:</b> Montag<br>" +
			"<b>An:</b> Ann<br></div><p>12</p>"
	}
	gmail := "--b\r\nContent-Type: text/vnd.google.email-reaction+json; charset=utf-8\r\n\r\n{\"emoji\": \"👍\", \"version\": 1}\r\n"
	for name, tt := range map[string]struct{ body, kind string }{
		"Gmail":              {alternative("👍\r\n\r\nAnn reacted via Gmail", gmail, "<p>👍"), AutoReaction},
		"Gmail, top":         {"Content-Type: text/vnd.google.email-reaction+json\r\n\r\n{}", AutoReaction},
		"Gmail, part lost":   {alternative("👍\r\n\r\nAnn reacted via Gmail\r\n\r\nOn Mon, Jan 5, 2026 Scribe <w@x.example> wrote:\r\n> 12", "", "<p>👍"), AutoReaction},
		"RFC 9078":           {"Content-Type: text/plain; charset=utf-8\r\nContent-Disposition: reaction\r\n\r\n👍", AutoReaction},
		"Outlook":            {outlook("Ann Example reacted to your message:"), AutoReaction},
		"Outlook, HTML":      {onlyHTML("reacted to your message:"), AutoReaction},
		"Outlook, German":    {onlyHTML("hat auf Ihre Nachricht reagiert:"), AutoReaction},
		"an answer":          {outlook("Thank you, please do the same for March:"), ""},
		"an answer by name":  {outlook("Ann Example needs 3 copies by Monday:"), ""},
		"an order":           {"\r\nAnn Example would like to order:\r\n\r\nItem: pen\r\nQuantity: 3\r\n", ""},
		"a mail to pass on":  {outlookText("Ann Example has sent this to Bob:"), ""},
		"a page with a logo": {strings.Replace(strings.Replace(onlyHTML("needs this from Bob:"), "<img alt=0 src=x>", "", 1), "<hr>", "<img src=logo><hr>", 1), ""},
		"a question":         {"\r\nHow do I switch off the mails that Bob reacted to your message?\r\n", ""},
		"a complaint":        {"\r\nPlease stop this: Bob reacted to your message\r\n\r\n> Numbers\r\n", ""},
		"first name":         {"\r\nAnn reacted to your message\r\n\r\n> Numbers\r\n", AutoReaction},
		"Outlook, French":    {outlookText("\r\n👍\r\n\r\nAnn Example a réagi à votre message :"), AutoReaction},
		"words of a person":  {"\r\nSomebody reacted to your message and asks for a new version.\r\n", ""},
		"below a reaction":   {"\r\nPlease go on.\r\n\r\nAnn Example reacted to your message:\r\n", ""},
		"an attached sample": {"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nWhat is this?\r\n--b\r\nContent-Type: text/vnd.google.email-reaction+json\r\nContent-Disposition: attachment\r\n\r\n{}\r\n--b--\r\n", ""},
		"an emoji alone":     {"Content-Type: text/plain; charset=utf-8\r\n\r\n👍\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := ReadHeader([]byte("From: Ann Example <ann@example.com>\r\nSubject: Re: Numbers\r\n" + tt.body))
			is.New(t).Equal(h.Automatic, tt.kind)
		})
	}
}
