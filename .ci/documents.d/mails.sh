#!/bin/sh
# packages: openssl gnupg libole-storage-lite-perl
# Makes mails that other programs have packed: S/MIME of OpenSSL, PGP of GnuPG, and a msg file written by
# OLE::Storage_Lite. Beside each mail, NAME.words has the lines that the input or the attachments must show.
set -eu
folder=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'gpgconf --homedir "$work/gnupg" --kill all 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

printf 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nThe harvest of Müller: 340 crates\r\n--b\r\nContent-Type: text/csv; name=crates.csv\r\n\r\nday,crates\r\n--b--\r\n' > entity
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=ann@example.com -days 9 2>/dev/null

# mail NAME: adds the fields of a mail to the part on standard input, which OpenSSL has written.
mail() {
	{ printf 'From: Ann <ann@example.com>\nTo: w@workers.example\nSubject: Harvest\nMessage-ID: <%s@example.com>\n' "$1"; cat; } > "$folder/envelope-$1.eml"
}
words() { name=$1; shift; printf '%s\n' "$@" > "$folder/envelope-$name.eml.words"; }

openssl smime -sign -nodetach -binary -in entity -signer cert.pem -inkey key.pem | mail smime-opaque
words smime-opaque 'The harvest of Müller: 340 crates' 'crates.csv: day,crates'
openssl cms -sign -nodetach -binary -stream -in entity -signer cert.pem -inkey key.pem | mail smime-indefinite
words smime-indefinite 'The harvest of Müller: 340 crates' 'crates.csv: day,crates'
openssl cms -sign -nodetach -binary -in entity -signer cert.pem -inkey key.pem -outform PEM -out pem
{ printf 'Content-Type: application/x-pkcs7-mime; name=smime.p7m\n\n'; cat pem; } | mail smime-pem
words smime-pem 'The harvest of Müller: 340 crates' 'crates.csv: day,crates'
openssl smime -sign -in entity -signer cert.pem -inkey key.pem | mail smime-clear
words smime-clear 'The harvest of Müller: 340 crates' 'crates.csv: day,crates'
openssl smime -encrypt -aes256 -in entity cert.pem | mail smime-encrypted
words smime-encrypted 'encrypted (S/MIME)' 'smime.p7m:'
openssl cms -encrypt -aes-256-gcm -in entity cert.pem | mail smime-authenveloped
words smime-authenveloped 'encrypted (S/MIME)' 'smime.p7m:'
openssl cms -sign -nodetach -binary -in entity -signer cert.pem -inkey key.pem -outform SMIME |
	openssl cms -encrypt -aes256 -binary -outform DER -out inner.der cert.pem
{ printf 'Content-Type: application/pkcs7-mime; name=smime.p7m\nContent-Transfer-Encoding: base64\n\n'; base64 inner.der; } | mail smime-unlabelled
words smime-unlabelled 'encrypted (S/MIME)' 'smime.p7m:'

mkdir -m 700 gnupg
export GNUPGHOME="$work/gnupg"
gpg --batch --quiet --passphrase '' --quick-gen-key ann@example.com future-default 2>/dev/null
gpg --batch --quiet --trust-model always --armor -r ann@example.com -o message.asc -e entity
{ printf 'Content-Type: text/plain\n\nPlease read this.\n\n'; cat message.asc; } | mail pgp-inline
words pgp-inline 'Please read this.' 'encrypted (PGP)' 'encrypted.asc: -----BEGIN PGP MESSA'
{ printf 'Content-Type: multipart/encrypted; protocol="application/pgp-encrypted"; boundary=p\n\n--p\nContent-Type: application/pgp-encrypted\n\nVersion: 1\n--p\nContent-Type: application/octet-stream; name=msg.asc\n\n'
	cat message.asc; printf -- '--p--\n'; } | mail pgp-mime
words pgp-mime 'encrypted (PGP)' 'msg.asc: -----BEGIN PGP MESSA'
printf 'The harvest: 340 crates\n-- 12 of them are bad\n' | gpg --batch --quiet --clearsign -o signed.asc
{ printf 'Content-Type: text/plain\n\n'; cat signed.asc; } | mail pgp-signed
words pgp-signed 'The harvest: 340 crates' '-- 12 of them are bad'

perl - harvest.msg <<'PERL'
use OLE::Storage_Lite; use Encode;
my $u = sub { OLE::Storage_Lite::Asc2Ucs($_[0]) };
my $file = sub { OLE::Storage_Lite::PPS::File->new($u->($_[0]), $_[1]) };
my $text = sub { $file->("__substg1.0_$_[0]001F", encode('UTF-16LE', decode('UTF-8', $_[1]))) };
my $dir = sub { OLE::Storage_Lite::PPS::Dir->new($u->($_[0]), undef, undef, $_[1]) };
my $properties = sub { $file->('__properties_version1.0', "\0" x $_[0]) };
my $attached = $dir->('__attach_version1.0_#00000000', [$properties->(8), $text->('3707', 'crates.csv'), $file->('__substg1.0_37010102', "day,crates\r\n")]);
my $inner = $dir->('__substg1.0_3701000D', [$properties->(24), $text->('0037', 'Inner subject'), $text->('1000', 'The inner text')]);
my $mail = $dir->('__attach_version1.0_#00000001', [$properties->(8), $inner]);
my $root = OLE::Storage_Lite::PPS::Root->new(undef, undef, [$properties->(32), $text->('0037', 'Ernte'), $text->('0C1A', 'Jörg Müller'),
	$text->('5D01', 'joerg@example.com'), $text->('1000', "The harvest of Müller: 340 crates\r\n"), $attached, $mail]);
$root->save($ARGV[0]) or die;
PERL
cp harvest.msg "$folder/mail-outlook.msg"
{ printf 'Content-Type: application/vnd.ms-outlook; name=harvest.msg\nContent-Transfer-Encoding: base64\n\n'; base64 harvest.msg; } | mail msg
words msg 'Jörg Müller' 'The harvest of Müller: 340 crates' 'crates.csv: day,crates' 'Inner subject' 'The inner text'
printf '%s\n' 'Jörg Müller' 'joerg@example.com' 'Ernte' 'The harvest of Müller: 340 crates' 'crates.csv' 'Inner subject' > "$folder/mail-outlook.msg.words"
