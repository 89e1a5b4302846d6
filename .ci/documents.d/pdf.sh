#!/usr/bin/env bash
# packages: texlive-latex-base texlive-latex-recommended texlive-fonts-recommended groff ghostscript weasyprint chromium libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui
#
# Makes PDF documents with the programs of other people in the folder $1. Beside NAME.pdf, NAME.words has the words that a
# person sees, in reading order.
set -euo pipefail
export SOURCE_DATE_EPOCH=0 FORCE_SOURCE_DATE=1 LC_ALL=C.UTF-8
out=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

first="The documentation of complicated organizational infrastructure necessitates considerable hyphenation throughout this
narrow column, particularly when internationalization responsibilities are misunderstood. Office staff find efficient
workflows difficult: five offices affirm it."
second="The second section begins here. Rates rose by 14 % (net) in 2025, and the board meets on Tuesday at ten."

# tex NAME: runs pdfTeX on NAME.tex, twice for the page labels.
tex() {
    pdflatex -interaction=batchmode "$1.tex" >/dev/null
    pdflatex -interaction=batchmode "$1.tex" >/dev/null
    cp "$1.pdf" "$out/$1.pdf"
}

# Two columns, formulas, accents of the old fonts, a table with an empty cell, a link, and Roman page labels.
cat >pdftex-article.tex <<END
\\documentclass[twocolumn]{article}
\\usepackage{hyperref}
\\title{On the Efficiency of Flow}\\author{J\\"urgen M\\"uller}\\date{May 2026}
\\begin{document}
\\pagenumbering{roman}\\maketitle
\\section{Introduction}
$first See \\href{https://example.com/flow}{the home page} for more. \\"Ubergr\\"o\\ss e na\\"\\i ve fa\\c cade \\'ecole.

\\begin{tabular}{lrr}Name & Qty & Price\\\\ Apples & 3 & 1.20\\\\ Pears & & 2.50\\end{tabular}
\\newpage
${second//%/\\%}
\\newpage
\\pagenumbering{arabic}
$first
\\end{document}
END
tex pdftex-article
cat >"$out/pdftex-article.words" <<END
On the Efficiency of Flow Jürgen Müller May 2026 1 Introduction $first See the home page for more. Übergröße naïve façade école.
Name Qty Price Apples 3 1.20 Pears 2.50 $second i $first 1
END

# Fields with values, and comments.
cat >pdftex-form.tex <<'END'
\documentclass{article}
\usepackage[pdfencoding=pdfdoc]{hyperref}
\begin{document}
\begin{Form}
Application form

\TextField[name=surname,value=Lovelace]{Surname:}

\TextField[name=remark]{Remark:}

\CheckBox[name=member,checked]{Member:}

\CheckBox[name=news]{News:}

\ChoiceMenu[combo,name=colour,value=green,default=green]{Colour:}{red,green,blue}
\end{Form}
\pdfannot width 20pt height 20pt depth 0pt {/Subtype /Text /T (Ann) /Contents (Please check the second line.)}
\pdfannot width 90pt height 20pt depth 0pt {/Subtype /FreeText /DA (/Helv 10 Tf) /Contents (Paid on 3 May)}
\end{document}
END
tex pdftex-form

# A page as a picture, and the same with the text that a program has recognized, in invisible letters.
cat >plain.tex <<END
\\documentclass{article}
\\pagestyle{empty}
\\begin{document}
$first
\\end{document}
END
pdflatex -interaction=batchmode plain.tex >/dev/null
gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=pdfimage24 -r150 -sOutputFile="$out/gs-scan.pdf" plain.pdf
cat >gs-recognized.tex <<END
\\documentclass{article}
\\usepackage{graphicx}
\\pagestyle{empty}
\\begin{document}
\\noindent\\rlap{\\smash{\\includegraphics[width=10cm]{$out/gs-scan.pdf}}}\\pdfliteral direct {3 Tr}$first
\\end{document}
END
tex gs-recognized
echo "$first" >"$out/gs-recognized.words"

# Encrypted documents: with a password only for changes, and with one for reading.
for password in "" secret; do
    name=gs-encrypted${password:+-secret}
    gs -q -dSAFER -dBATCH -dNOPAUSE -sDEVICE=pdfwrite -dCompatibilityLevel=1.6 -dEncryptionR=3 -dKeyLength=128 \
        -sOwnerPassword=owner -sUserPassword="$password" -sOutputFile="$out/$name.pdf" plain.pdf
done
echo "$first" >"$out/gs-encrypted.words"

# A manual of groff with the fonts of every PostScript printer.
cat >groff-manual.ms <<END
.TL
Manual of the pump
.NH
Safety
.LP
$first
.NH
Care
.LP
$second
END
groff -ms -Tpdf groff-manual.ms >"$out/groff-manual.pdf"
echo "Manual of the pump 1. Safety $first 2. Care $second" >"$out/groff-manual.words"

# An invoice as a web page, and a report.
cat >invoice.html <<END
<html><head><title>Invoice</title><style>td, th { padding: 2px 24px; text-align: right } td:first-child { text-align: left }</style></head>
<body><h1>Rechnung Nr. 4711</h1><p>$second</p>
<table><tr><th>Artikel</th><th>Menge</th><th>Preis</th></tr><tr><td>Äpfel, süß</td><td>3</td><td>1.200,50 €</td></tr>
<tr><td>Birnen</td><td></td><td>2,50 €</td></tr></table>
<p>Questions go to <a href="https://example.com/help">our help pages</a>.</p></body></html>
END
words="Rechnung Nr. 4711 $second Artikel Menge Preis Äpfel, süß 3 1.200,50 € Birnen 2,50 € Questions go to our help pages."
weasyprint -q --encoding utf-8 invoice.html "$out/weasyprint-invoice.pdf" 2>/dev/null
echo "$words" >"$out/weasyprint-invoice.words"
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --user-data-dir="$work/profile" \
    --print-to-pdf="$out/chromium-report.pdf" "file://$work/invoice.html" >/dev/null 2>&1
echo "$words" >"$out/chromium-report.words"

# Words that are written from right to left: a browser draws some of them from their last letter.
arabic="هذا نص عربي للاختبار. الاسم: أحمد، العمر: ٤٢"
hebrew="קוראים לי דנה, ואני בת ארבעים."
cat >letter.html <<END
<html><body style="font-family: 'DejaVu Sans'"><p dir="rtl">$arabic</p><p dir="rtl">$hebrew</p>
<p>The word שלום means peace.</p></body></html>
END
chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --user-data-dir="$work/profile" \
    --print-to-pdf="$out/chromium-letter.pdf" "file://$work/letter.html" >/dev/null 2>&1
echo "$arabic $hebrew The word שלום means peace." >"$out/chromium-letter.words"

# Text, a table and slides of LibreOffice.
sed 's/<h1>/<h1 lang="de">/' invoice.html >libreoffice-writer.html
cat >libreoffice-calc.csv <<'END'
Region,Units,Revenue,Note
North,120,2400.50,first
South,,310.00,second
Total,120,2710.50,
END
cat >libreoffice-impress.fodp <<END
<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" office:version="1.2"
 office:mimetype="application/vnd.oasis.opendocument.presentation"><office:body><office:presentation>
 <draw:page draw:name="one"><draw:frame svg:x="2cm" svg:y="2cm" svg:width="22cm" svg:height="3cm"><draw:text-box>
 <text:p>Quarterly results</text:p></draw:text-box></draw:frame></draw:page>
 <draw:page draw:name="two"><draw:frame svg:x="2cm" svg:y="2cm" svg:width="22cm" svg:height="9cm"><draw:text-box>
 <text:p>$second</text:p></draw:text-box></draw:frame></draw:page>
</office:presentation></office:body></office:document>
END
soffice -env:UserInstallation="file://$work/office" --headless --infilter="HTML (StarWriter)" \
    --convert-to pdf:writer_pdf_Export --outdir "$out" libreoffice-writer.html >/dev/null 2>&1
soffice -env:UserInstallation="file://$work/office" --headless --convert-to pdf --outdir "$out" \
    libreoffice-calc.csv libreoffice-impress.fodp >/dev/null 2>&1
echo "$words" >"$out/libreoffice-writer.words"
echo "libreoffice-calc Page 1 Region Units Revenue Note North 120 2400.5 first South 310 second Total 120 2710.5" >"$out/libreoffice-calc.words"
echo "Quarterly results $second" >"$out/libreoffice-impress.words"
