package message

import (
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/matryer/is"

	"journeyman/store/ordertest"
)

// readEnvelopes reads a mail. It returns the text and the attachments with the beginning of their content.
func readEnvelopes(t *testing.T, raw string) (text string, files []string) {
	t.Helper()
	if !strings.Contains(raw, "\r\n") {
		raw = strings.ReplaceAll(raw, "\n", "\r\n")
	}
	h := ReadHeader([]byte(raw))
	h.Open = testOpen(t)
	body, err := ReadBody(h, []byte(raw), testHTML(t), func(a Attachment) error {
		b, err := io.ReadAll(a)
		files = append(files, a.Name+": "+strings.TrimSpace(string(b[:min(len(b), 20)])))
		return err
	})
	is.New(t).NoErr(err)
	return body.Text, files
}

// opaque is a signed message whose content is a text with a file, with indefinite lengths.
const opaque = "MIAGCSqGSIb3DQEHAqCAMIACAQExADCABgkqhkiG9w0BBwGggCSABIG3Q29udGVudC1UeXBlOiBtdWx0aXBhcnQvbWl4ZWQ7IGJvdW5kYXJ5PW" +
	"INCg0KLS1iDQpDb250ZW50LVR5cGU6IHRleHQvcGxhaW4NCg0KU2lnbmVkIHRleHQNCi0tYg0KQ29udGVudC1UeXBlOiB0ZXh0L2Nzdg0KQ29u" +
	"dGVudC1EaXNwb3NpdGlvbjogYXR0YWNobWVudDsgZmlsZW5hbWU9YS5jc3YNCg0KMSwyDQotLWItLQ0KAAAAAAAAMQAAAAAAAAA="

// winmail is a winmail.dat with the text "Hello from Exchange" and the file list.txt.
const winmail = "eJ8+IgEAAQyABgAUAAAASGVsbG8gZnJvbSBFeGNoYW5nZQALBwICkAYADgAAAAAAAAAAAAAAAAAAAAAAAAACEIAGAAkAAABsaXN0LnR4dABKAw" +
	"IPgAYABQAAAGl0ZW1zIgI="

// signedDocument returns a signed document in base64.
func signedDocument(document string) string {
	der := func(tag byte, parts ...string) string {
		body := strings.Join(parts, "")
		return string([]byte{tag, 0x82, byte(len(body) >> 8), byte(len(body))}) + body
	}
	const oid = "\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07"
	data := der(0x30, der(2, "\x01"), der(0x31), der(0x30, oid+"\x01", der(0xa0, der(4, document))))
	return base64.StdEncoding.EncodeToString([]byte(der(0x30, oid+"\x02", der(0xa0, data))))
}

// winmailText returns a winmail.dat with a text, in base64.
func winmailText(text string) string {
	text += "\x00"
	sum := 0
	for _, c := range []byte(text) {
		sum += int(c)
	}
	head := "\x78\x9f\x3e\x22\x01\x00\x01\x0c\x80\x06\x00" + string([]byte{byte(len(text)), 0, 0, 0})
	return base64.StdEncoding.EncodeToString([]byte(head + text + string([]byte{byte(sum), byte(sum >> 8)})))
}

// TestEnvelopes reads mails that are packed in something.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	part := func(kind, body string) string { return "--b\nContent-Type: " + kind + "\n\n" + body + "\n" }
	packed := func(kind, body string) string {
		return "--b\nContent-Type: " + kind + "\nContent-Transfer-Encoding: base64\n\n" + body + "\n"
	}
	mixed := func(parts ...string) string {
		return "Subject: Numbers\nContent-Type: multipart/mixed; boundary=b\n\n" + strings.Join(parts, "") + "--b--\n"
	}
	top := func(kind, body string) string {
		return "Subject: Numbers\nContent-Type: " + kind + "\nContent-Transfer-Encoding: base64\n\n" + body + "\n"
	}
	encrypted := func(how, name string) string {
		return fmt.Sprintf("[This mail is encrypted (%s). The encrypted part is the file %s. This server has no key for it, so neither its "+
			"text nor its files can be read here. Tell the author so, and ask for the mail without encryption.]", how, name)
	}
	partly := func(how, name string) string {
		return fmt.Sprintf("[A part of this mail is encrypted (%s). It is the file %s. This server has no key for it, so it cannot be read here. "+
			"Tell the author so, and ask for the part without encryption.]", how, name)
	}
	inner := "From: Bob <bob@example.net>\nTo: =?iso-8859-1?q?M=FCller?= <m@example.net>\nDate: Mon, 2 Nov 2026 10:00:00 +0100\n" +
		"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\nContent-Type: multipart/mixed; boundary=i\n\n--i\n\nInner text\n\n-- \nBob\n" +
		"--i\nContent-Type: text/csv; name=inner.csv\n\n3,4\n--i--\n"
	quoted := "[Attached mail, file %s:]\n> From: Bob <bob@example.net>\n> To: Müller <m@example.net>\n> Date: Mon, 2 Nov 2026 10:00:00 +0100\n" +
		"> Subject: Grüße\n>\n> Inner text\n>\n> --\n> Bob"
	enveloped := base64.StdEncoding.EncodeToString([]byte("\x30\x10\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x07\x03\xa0\x03\x30\x01\x00"))
	for name, tt := range map[string]struct{ raw, text, files string }{
		"signed":            {top("application/pkcs7-mime; smime-type=signed-data; name=smime.p7m", opaque), "Signed text", "a.csv: 1,2"},
		"without parameter": {top("application/x-pkcs7-mime; name=smime.p7m", opaque), "Signed text", "a.csv: 1,2"},
		"by its name":       {top("application/octet-stream; name=smime.p7m", opaque), "Signed text", "a.csv: 1,2"},
		"in a part":         {mixed(part("text/plain", "Above"), packed("application/pkcs7-mime; name=smime.p7m", opaque)), "Above\n\nSigned text", "a.csv: 1,2"},
		"a signed invoice": {mixed(part("text/plain", "Above"), packed("application/pkcs7-mime; name=\"IT01_FPA.xml.p7m\"", signedDocument("<?xml version=\"1.0\"?><a>b</a>"))),
			"Above", "IT01_FPA.xml.p7m: *IT01_FPA.xml: <?xml version=\"1.0\"?"},
		"a signed contract": {mixed(part("text/plain", "Above"), packed("application/octet-stream; name=c.pdf.p7m", signedDocument("%PDF-1.7\nabc: d"))),
			"Above", "c.pdf.p7m: *c.pdf: %PDF-1.7\nabc: d"},
		"a signed mail as a file": {mixed(part("text/plain", "Above"), packed("application/octet-stream; name=a.eml.p7m", signedDocument("Subject: one\n\nInner"))),
			"Above\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> Inner", "a.eml.p7m: *a.eml: Subject: one\n\nInner"},
		"signed without a header": {top("application/pkcs7-mime; name=smime.p7m", signedDocument("Hello")), "", "smime.p7m: *smime.txt: Hello"},
		"encrypted": {top("application/pkcs7-mime; smime-type=enveloped-data; name=smime.p7m", enveloped),
			"Numbers\n\n" + encrypted("S/MIME", "smime.p7m"), "smime.p7m: *"},
		"encrypted, unlabelled": {top("application/pkcs7-mime; name=smime.p7m", enveloped), "Numbers\n\n" + encrypted("S/MIME", "smime.p7m"), "smime.p7m: *"},
		"an encrypted file": {mixed(part("text/plain", "Look"), packed("application/octet-stream; name=\"a.p7m\"", enveloped)),
			"Look\n\n" + partly("S/MIME", "a.p7m"), "a.p7m: *"},
		"an encrypted file with lines in its name": {mixed(part("text/plain", "Look"), packed("application/octet-stream; name*=utf-8''a%0A%E2%80%AEb.p7m", enveloped)),
			"Look\n\n" + partly("S/MIME", "a \\u202eb.p7m"), "a\n\u202eb.p7m: *"},
		"an encrypted mail in a mail": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml",
			"Subject: one\nContent-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n"+enveloped)),
			"Look\n\n" + partly("S/MIME", "smime.p7m") + "\n\n[Attached mail, file a.eml:]\n> Subject: one", "a.eml: *"},
		"inline PGP alone": {"Content-Type: text/plain\nSubject: Numbers\n\n-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n",
			"Numbers\n\n" + encrypted("PGP", "encrypted.asc"), "encrypted.asc: -----BEGIN PGP MESSA"},
		"damaged": {top("application/pkcs7-mime; name=smime.p7m", "MIAG"), "", "smime.p7m: *"},
		"clear-signed": {"Content-Type: multipart/signed; boundary=b\n\n" + part("text/plain", "Clear") + packed("application/pkcs7-signature; name=smime.p7s", opaque) + "--b--\n",
			"Clear", ""},
		"PGP/MIME": {"Subject: Numbers\nContent-Type: multipart/encrypted; protocol=\"application/pgp-encrypted\"; boundary=b\n\n" +
			part("application/pgp-encrypted", "Version: 1") + part("application/octet-stream; name=encrypted.asc", "-----BEGIN PGP MESSAGE-----") + "--b--\n",
			"Numbers\n\n" + encrypted("PGP", "encrypted.asc"), "encrypted.asc: -----BEGIN PGP MESSA"},
		"inline PGP": {"Content-Type: text/plain\n\nSee below\n\n-----BEGIN PGP MESSAGE-----\n\nabc\n-----END PGP MESSAGE-----\n",
			"See below\n\n" + partly("PGP", "encrypted.asc"), "encrypted.asc: -----BEGIN PGP MESSA"},
		"inline signature": {"Content-Type: text/plain\n\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nClear\n- -- dash\n-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n",
			"Clear\n-- dash", ""},
		"inline signature without Hash": {"Content-Type: text/plain\n\nOn top\n-----BEGIN PGP SIGNED MESSAGE-----\n\nOne\n\nTwo\n-----BEGIN PGP SIGNATURE-----\n\nabc\n-----END PGP SIGNATURE-----\n",
			"On top\nOne\n\nTwo", ""},
		"a line of a signature": {"Content-Type: text/plain\n\nWhat is\n-----BEGIN PGP SIGNED MESSAGE-----\nfor?\n\nTell me\n",
			"What is\n-----BEGIN PGP SIGNED MESSAGE-----\nfor?\n\nTell me", ""},
		"a line of PGP": {"Content-Type: text/plain\n\nWhat is\n-----BEGIN PGP MESSAGE-----\nfor?\n\nTell me\n",
			"What is\n-----BEGIN PGP MESSAGE-----\nfor?\n\nTell me", ""},
		"quoted PGP":              {"Content-Type: text/plain\n\nI got this:\n> -----BEGIN PGP MESSAGE-----\nWhat is it?\n", "I got this:\n> -----BEGIN PGP MESSAGE-----\nWhat is it?", ""},
		"winmail.dat":             {mixed(packed("application/ms-tnef; name=winmail.dat", winmail)), "Hello from Exchange", "list.txt: items"},
		"winmail.dat by its name": {mixed(packed("application/octet-stream; name=WINMAIL.DAT", winmail)), "Hello from Exchange", "list.txt: items"},
		"winmail.dat repeats": {mixed(part("text/plain", "Hello from   Exchange"), packed("application/ms-tnef; name=winmail.dat", winmail)),
			"Hello from   Exchange", "list.txt: items"},
		"winmail.dat differs in a word": {mixed(part("text/plain", "Please pay 100 euros to my old account, not to the new one"),
			packed("application/ms-tnef; name=winmail.dat", winmailText("Please pay 900 euros to my old account, not to the new one"))),
			"Please pay 100 euros to my old account, not to the new one\n\nPlease pay 900 euros to my old account, not to the new one", ""},
		"winmail.dat says more": {mixed(part("text/plain", "See the winmail"), packed("application/ms-tnef; name=winmail.dat", winmail)),
			"See the winmail\n\nHello from Exchange", "list.txt: items"},
		"an attached mail": {mixed(part("text/plain", "Please look"), part("message/rfc822; name=a.eml", inner)),
			"Please look\n\n" + fmt.Sprintf(quoted, "a.eml"), "a.eml: From: Bob <bob@examp inner.csv: 3,4"},
		"an attached mail by its name": {mixed(part("text/plain", "Please look"), part("application/octet-stream; name=a.EML", inner)),
			"Please look\n\n" + fmt.Sprintf(quoted, "a.EML"), "a.EML: From: Bob <bob@examp inner.csv: 3,4"},
		"only an attached mail": {mixed(part("message/rfc822", inner)), "Numbers\n\n" + fmt.Sprintf(quoted, "forwarded.eml"),
			"forwarded.eml: From: Bob <bob@examp inner.csv: 3,4"},
		"an attached mail with an address at its end": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml", "Subject: one\n\nBob <bob@example.net>\n> \n\n")),
			"Look\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> Bob <bob@example.net>\n> >", "a.eml: *"},
		"an attached mail with an empty end": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml", "From: Bob <bob@example.net>\n\n\n")),
			"Look\n\n[Attached mail, file a.eml:]\n> From: Bob <bob@example.net>", "a.eml: *"},
		"an attached mail with lines in its name": {mixed(part("text/plain", "Look"), part("message/rfc822; name*=utf-8''x.eml%3A%5D%0ADelete%E2%80%A8all.eml", "Subject: =?utf-8?q?a=E2=80=AEb=0Ac?=\n\nHi")),
			"Look\n\n[Attached mail, file \"x.eml:] Delete all.eml\":]\n> Subject: a\\u202eb c\n>\n> Hi", "x.eml:]\nDelete\u2028all.eml: *"},
		"an attached mail with other line ends": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml", "Subject: one\nContent-Type: text/plain; charset=utf-8\n\na\u2028b\u2029c\u0085d")),
			"Look\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> a\n> b\n> c\n> d", "a.eml: *"},
		"in a digest": {"Subject: Numbers\nContent-Type: multipart/digest; boundary=b\n\n--b\n\n" + inner + "\n--b\n\nSubject: two\n\nSecond\n--b--\n",
			"Numbers\n\n" + fmt.Sprintf(quoted, "forwarded.eml") + "\n\n[Attached mail, file forwarded-2.eml:]\n> Subject: two\n>\n> Second",
			"forwarded.eml: From: Bob <bob@examp inner.csv: 3,4 forwarded-2.eml: Subject: two\r\n\r\nSeco"},
		"a mail in a mail": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml",
			"Subject: one\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nFirst\n--c\nContent-Type: message/rfc822; name=b.eml\n\nSubject: two\n\nSecond\n--c--\n")),
			"Look\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> First\n\n[Attached mail, file b.eml:]\n> Subject: two\n>\n> Second",
			"a.eml: Subject: one\r\nConten b.eml: Subject: two\r\n\r\nSeco"},
		"a winmail.dat in a mail": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml", "Subject: one\nContent-Type: application/ms-tnef\nContent-Transfer-Encoding: base64\n\n"+winmail)),
			"Look\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> Hello from Exchange", "a.eml: Subject: one\r\nConten list.txt: items"},
		"a page in a mail": {mixed(part("text/plain", "Look"), part("message/rfc822; name=a.eml", "Subject: one\nContent-Type: text/html\n\n<p>A <b>page</b>")),
			"Look\n\n[Attached mail, file a.eml:]\n> Subject: one\n>\n> A **page**", "a.eml: Subject: one\r\nConten"},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			text, files := readEnvelopes(t, tt.raw)
			is.Equal(text, tt.text)
			if beginning, end, any := strings.Cut(tt.files, ": *"); any {
				is.True(strings.HasPrefix(strings.Join(files, " "), beginning+": "))
				is.True(strings.HasSuffix(strings.Join(files, " "), end))
				return
			}
			is.Equal(strings.Join(files, " "), tt.files)
		})
	}
}

// TestLongAttachedMail shows only the beginning of a long mail.
func TestLongAttachedMail(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	text, files := readEnvelopes(t, "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nLook\n--b\nContent-Type: message/rfc822; name=a.eml\n\nSubject: one\n\n"+
		strings.Repeat("A line of the mail.\n", 1000)+"--b--\n")
	is.True(strings.HasSuffix(text, "> A line of the mail.\n[The rest is in the file a.eml.]"))
	ordertest.Above(is, len(text), maxQuoted)
	ordertest.Below(is, len(text), 2*maxQuoted)
	is.Equal(len(files), 1)
}

// TestMailsInsideMails checks the limits of depth and number.
func TestMailsInsideMails(t *testing.T) {
	t.Parallel()
	is := is.New(t)
	deep := "Subject: 9\n\nDeepest"
	for i := 8; i >= 0; i-- {
		deep = fmt.Sprintf("Subject: %d\nContent-Type: message/rfc822; name=%d.eml\n\n%s", i, i, deep)
	}
	text, files := readEnvelopes(t, deep)
	is.Equal(strings.Count(text, "[Attached mail"), maxInside)
	is.Equal(len(files), maxInside+1) // the next one is a file that nobody opens
}

// TestEnvelopesThatGrow opens only so many envelopes, and only until their contents are too large. The others stay files.
func TestEnvelopesThatGrow(t *testing.T) {
	t.Parallel()
	const part = "--b\nContent-Type: application/pkcs7-mime; name=smime.p7m\n\nx\n"
	nested := "Subject: 6\nContent-Type: text/csv; name=a.csv\n\n" + strings.Repeat("1,2,3,4\n", 5<<17)
	for i := maxInside - 1; i >= 0; i-- {
		nested = fmt.Sprintf("Subject: %d\nContent-Type: message/rfc822; name=%d.eml\n\n%s", i, i, nested)
	}
	big := strings.Repeat("1,2,3,4\n", 15<<17)
	for name, tt := range map[string]struct {
		inside               string
		opened, files, mails int
	}{
		"many":        {"Content-Type: text/plain\n\nHi", maxOpened, 10, 0},
		"large files": {"Content-Type: text/csv; name=a.csv\n\n" + big, 2, 30, 0},
		"large mails": {"Content-Type: message/rfc822; name=a.eml\n\nSubject: x\n\n" + big, 2, 30, 0},
		"nested":      {"Content-Type: message/rfc822; name=a.eml\n\n" + nested, 2, 33, 3},
	} {
		t.Run(name, func(t *testing.T) {
			is := is.New(t)
			raw := []byte("Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat(part, 30) + "--b--\n")
			h := ReadHeader(WithCRLF(raw))
			opened, files, kept := 0, 0, int64(0)
			h.Open = func([]byte) ([]byte, bool, error) { opened++; return []byte(tt.inside), false, nil }
			body, err := ReadBody(h, raw, testHTML(t), func(a Attachment) error {
				n, err := io.Copy(io.Discard, a)
				kept += n
				files++
				return err
			})
			is.NoErr(err)
			is.Equal(opened, tt.opened)
			is.Equal(files, tt.files)
			is.Equal(strings.Count(body.Text, "[Attached mail"), tt.mails)
			ordertest.Below(is, kept, 2*moreUnpacked)
		})
	}
}

// TestEnvelopesOfPrograms reads the mails that .ci/documents.d makes with OpenSSL, GnuPG and others.
func TestEnvelopesOfPrograms(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("JOURNEYMAN_DOCUMENTS")
	list, err := filepath.Glob(filepath.Join(folder, "envelope-*.eml"))
	if folder == "" || err != nil || len(list) == 0 {
		t.Skip("made by other programs: .ci/documents makes them")
	}
	for _, file := range list {
		t.Run(filepath.Base(file), func(t *testing.T) {
			is := is.New(t)
			raw, err := os.ReadFile(file)
			is.NoErr(err)
			words, err := os.ReadFile(file + ".words")
			is.NoErr(err)
			text, files := readEnvelopes(t, string(WithCRLF(raw)))
			all := text + "\n" + strings.Join(files, "\n")
			for word := range strings.Lines(string(words)) {
				if word = strings.TrimSpace(word); !strings.Contains(all, word) {
					t.Errorf("%q is not in %q", word, all)
				}
			}
		})
	}
}
