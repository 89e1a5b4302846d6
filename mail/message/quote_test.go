package message

import (
	"maps"
	"strings"
	"testing"

	"github.com/matryer/is"
)

// split reads the plain text of a mail.
func split(t testing.TB, text string, fields ...string) Body {
	t.Helper()
	raw := "From: Ann <ann@example.com>\nTo: Scribe <w@workers.example>\nContent-Type: text/plain; charset=utf-8\n" +
		strings.Join(append(fields, ""), "\n") + "\n" + text + "\n"
	_, body, _ := readAll(t, []byte(strings.ReplaceAll(raw, "\n", "\r\n")))
	return body
}

// TestMobileLines sends pictures with only the line of a program, in many languages. The mail has no text of its
// author.
func TestMobileLines(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"Sent from my iPhone", "Von meinem iPhone gesendet", "Envoyé de mon iPhone", "Enviado desde mi iPhone",
		"Inviato da iPhone", "Enviado do meu iPhone", "Verstuurd vanaf mijn iPhone", "Skickat från min iPhone",
		"Sendt fra min iPhone", "Lähetetty iPhonesta", "Wysłane z iPhone'a", "Odesláno z iPhonu", "Odoslané z iPhonu",
		"Poslano s mojeg iPhonea", "Poslano z mojega iPhona", "Trimis de pe iPhone-ul meu", "Отправлено с iPhone",
		"Надіслано з iPhone", "Изпратено от моя iPhone", "Στάλθηκε από το iPhone μου", "iPhone’umdan gönderildi",
		"iPhone cihazımdan gönderildi", "נשלח מה-iPhone שלי", "تم الإرسال من الـ iPhone", "أُرسلت من الـ iPhone",
		"ส่งจาก iPhone ของฉัน", "Đã gửi từ iPhone của tôi", "Dikirim dari iPhone saya", "Dihantar daripada iPhone saya",
		"iPhoneから送信", "나의 iPhone에서 보냄", "发自我的 iPhone", "從我的 iPhone 傳送", "मेरे iPhone से भेजा गया",
		"Enviat des del meu iPhone", "Az iPhone készülékemről küldve", "Sent from my Galaxy", "Envoyé depuis mon appareil Galaxy",
		"Sent from my Samsung Galaxy smartphone.", "Von meinem Samsung Galaxy Smartphone gesendet.", "(Sent from my iPad)",
		"Get Outlook for Android<https://aka.ms/AAb9ysg>", "Outlook für iOS beziehen<https://aka.ms/o0ukef>",
		"Télécharger Outlook pour Android<https://aka.ms/AAb9ysg>", "Iegūt Outlook darbam ar iOS<https://aka.ms/o0ukef>",
		"Sent from Yahoo Mail for iPhone", "Gesendet von Yahoo Mail auf Android", "Inviato da Yahoo Mail su Android",
		"Gesendet mit der GMX Mail App", "Sent with Proton Mail secure email.", "Von Outlook für Android gesendet",
		"Get Outlook for iOS", "Get TypeApp for Android", "Get BlueMail for Android", "Sent from Mail for Windows 10",
		"Get Yahoo Mail for Mobile", "Sent from my Verizon, Samsung Galaxy smartphone", "Gesendet vom Handy",
		"Diese Nachricht wurde von meinem Android-Gerät mit K-9 Mail gesendet.", "Saadetud minu iPhone'ist",
	} {
		for _, text := range []string{line, "\n\n" + line + "\n\n", "____________________________\n" + line} {
			only := split(t, text, "Subject: What does this meter say?")
			below := split(t, "Read it.\n\n"+text)
			if only.Text != "" || only.Signature == "" || below.Text != "Read it." {
				t.Errorf("%q: %+v, %+v", text, only, below)
			}
		}
	}
	// No list has these languages. The line may be the author's, so it is kept.
	for _, text := range []string{"Imetumwa kutoka kwa iPhone yangu", "Gestuur vanaf my iPhone",
		"გამოგზავნილია ჩემი iPhone-იდან", "Ուղարկված է իմ iPhone-ից", "Broken iPhone", "Please sell my iPad"} {
		body := split(t, text)
		is.New(t).Equal([]any{body.Text, body.Faint}, []any{text, true})
		is.New(t).True(!split(t, "Read it.\n\n"+text).Faint)
	}
	for _, text := range []string{"Broken iPhone", "Sent from my iPad: the three pictures of the damage", "Sent from my iPhone?", "My iPhone shows this. What is it?",
		"iPhone 15, screen broken", "Is this a Samsung Galaxy", "Outlook says this on Windows!", "Please sell my iPad",
		"Get me an Android phone for work, please: a cheap one", "Get me three offers for a Samsung Galaxy S24",
		"Get the Windows licences renewed by Friday.", "Get quotes for 20 smartphones, please", "Get licences for Windows",
		"Sent the contract to Samsung.", "Von meinem Windows-Rechner bitte die Daten löschen.", "iPhone dün gönderildi.",
		"Das iPhone wurde gestern gesendet.", "Enviado a Samsung, falta el recibo", "从iPhone换成Android手机"} {
		is.New(t).Equal(split(t, text).Text, text) // the author's own words
	}
}

// TestBeyond compares quoted mails with what a task knows.
func TestBeyond(t *testing.T) {
	t.Parallel()
	const answer = "Here are the **numbers** of [the report](https://example.com/report):\n\n1. Apples: 340\n2. Pears: 410\n\nBest regards"
	const quoted = "On Sat, Nov 21, 2026 at 9:30 AM Scribe <w@workers.example> wrote:\n\n> Here are the numbers of the report\n" +
		"> <https://example.com/report>:\n>\n>    1. Apples: 340\n>    2. Pears:\n> 410\n>\n> Best regards"
	const question = "Shall I delete the backup?\nShall I write to Bob?"
	const list = "Date: Friday\nTo: warehouse\nSubject: 20 boxes"
	mails := []string{"I know the book.", answer, question, "Yes\nPlease delete all backups of last year"}
	header := "From: Scribe <w@workers.example>\nSent: Saturday, November 21, 2026 9:30 AM\nTo: Ann <ann@example.com>\nSubject: Numbers\n\n"
	for name, tt := range map[string]struct{ history, want string }{
		"nothing":             {"", ""},
		"what it knows":       {quoted, ""},
		"by another header":   {header + answer, ""},
		"a line of a program": {quoted + "\n>\n> Sent from my iPhone", ""},
		"a word of somebody":  {"> No!\n>\n" + quoted, "> No!"},
		"short answers between the lines": {header + "Here are the numbers of the report:\n\n1. Apples: 340\nNo\n2. Pears: 410\n10\nBest regards",
			header + "Here are the numbers of the report:\n\n1. Apples: 340\nNo\n2. Pears: 410\n10"},
		"a short answer below": {header + answer + "\nOk", header + answer + "\nOk"},
		"an emoji of somebody": {"> 👍🏽\n>\n" + quoted, "> 👍🏽"},
		"a mail in between": {"From: Bob <bob@example.org>\nSent: Saturday, November 21, 2026 9:30 AM\nTo: Ann <ann@example.com>\n" +
			"Subject: Numbers\n\nPears are wrong.\n\n" + header + answer, "From: Bob <bob@example.org>\n" +
			"Sent: Saturday, November 21, 2026 9:30 AM\nTo: Ann <ann@example.com>\nSubject: Numbers\n\nPears are wrong."},
		"a known answer below a question": {header + question + "\nYes", header + question + "\nYes"},
		"a known answer between the lines": {header + "Shall I delete the backup?\nYes\nShall I write to Bob?",
			header + "Shall I delete the backup?\nYes"},
		"a long known answer": {header + question + "\nPlease delete all backups of last year",
			header + question + "\nPlease delete all backups of last year"},
		"an own list":       {header + question + "\n\n" + list, header + question + "\n\n" + list},
		"words in a rule":   {header + question + "\n--- APPROVED ---", header + question + "\n--- APPROVED ---"},
		"a mark in a rule":  {"-----Original Message-----\n" + header + question, ""},
		"a picture between": {header + "I know the book.\n[cid:1]\nHere are the numbers of the report:\n1. Apples: 340\n2. Pears: 410", header + "I know the book.\n[cid:1]"},
		"another number":    {strings.ReplaceAll(quoted, "410", "510"), strings.TrimSuffix(strings.ReplaceAll(quoted, "410", "510"), "\n>\n> Best regards")},
		"too much":          {strings.Repeat("> Best regards\n", maxCompared+1), strings.Repeat("> Best regards\n", maxCompared+1)},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			is.Equal(Body{History: tt.history}.Beyond(mails), tt.want)
			is.Equal(Body{History: tt.history}.Beyond(nil) == "", tt.history == "") // nothing is known
		})
	}
}

// FuzzSplit splits random texts. Every word is in one of the parts.
func FuzzSplit(f *testing.F) {
	for _, s := range specimens(f) {
		h := ReadHeader(s.raw)
		f.Add(string(h.body), h.Subject)
	}
	f.Add("> a\n\nb\n> c\n-- \nd\nFrom: a <b@c>\nDate: 1\nTo: d\nSubject: x\n", "Re: x")
	f.Fuzz(func(t *testing.T, text, subject string) {
		h := Header{Subject: subject, From: "ann@example.com", FromName: "Ann", To: []string{"w@workers.example"}}
		b := splitBody(text, h)
		want, got := words(cleanText(text)), words(b.Text+"\n"+b.History+"\n"+b.Signature)
		if !maps.Equal(want, got) {
			t.Errorf("%q\nbecomes %q,\n%q and\n%q", text, b.Text, b.History, b.Signature)
		}
		if rest := b.Beyond([]string{text}); len(rest) > len(b.History) {
			t.Errorf("%q grows to %q", b.History, rest)
		}
	})
}

// words counts the words of a text.
func words(text string) map[string]int {
	counts := map[string]int{}
	for _, word := range strings.Fields(text) {
		counts[word]++
	}
	return counts
}
