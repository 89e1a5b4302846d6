#!/usr/bin/python3
# packages: zip bzip2 zstd xz-utils pandoc libreoffice-writer-nogui libreoffice-calc-nogui libreoffice-impress-nogui
"""Makes archives, pages and old office documents with the programs that people use. The argument is the folder."""

import os
import subprocess
import sys
import tempfile
import zipfile

folder = os.path.abspath(sys.argv[1])
os.makedirs(folder, exist_ok=True)


def run(*command, cwd=None):
    subprocess.run(command, check=True, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def words(name, text):
    with open(os.path.join(folder, name + ".words"), "w", encoding="utf-8") as f:
        f.write(text)


def archives(source):
    os.makedirs(os.path.join(source, "docs"))
    for name, text in (("docs/Größe.txt", "Grüße aus Köln\n"), ("a.csv", "Name;Menge\nÄpfel;3\n")):
        with open(os.path.join(source, name), "w", encoding="utf-8") as f:
            f.write(text)
    members = ("docs/Größe.txt", "a.csv")
    for name, options in (("infozip.zip", ("-q",)), ("stored.zip", ("-q", "-0")), ("locked.zip", ("-q", "-P", "secret"))):
        run("zip", *options, os.path.join(folder, name), *members, cwd=source)
    for name, options in (("v7.tar", ("--format=v7",)), ("ustar.tar", ("--format=ustar",)), ("gnu.tar", ("--format=gnu",)),
                          ("pax.tgz", ("-z", "--format=pax")), ("b.tar.bz2", ("-j",)), ("z.tar.zst", ("--zstd",)),
                          ("x.tar.xz", ("-J",))):
        run("tar", "-c", *options, "-f", os.path.join(folder, name), *members, cwd=source)
    # A program of Japanese Windows writes names in the encoding of the machine, without a mark.
    with zipfile.ZipFile(os.path.join(folder, "japanese.zip"), "w") as z:
        info = zipfile.ZipInfo("XXXXXXXX.txt")
        z.writestr(info, "見積書\n".encode("shift_jis"))
    path = os.path.join(folder, "japanese.zip")
    with open(path, "rb") as f:
        data = f.read()
    with open(path, "wb") as f:
        f.write(data.replace(b"XXXXXXXX", "会社の資".encode("shift_jis")))


def documents(source):
    text = "# Report of March\n\nThe quick *brown* fox & others cost 12 €.\n\n- first point\n- second point\n"
    with open(os.path.join(source, "old.md"), "w", encoding="utf-8") as f:
        f.write(text)
    plain = "Report of March The quick brown fox & others cost 12 €. first point second point"
    run("pandoc", "-s", "--metadata=title:March", "-o", os.path.join(folder, "pandoc.html"), "old.md", cwd=source)
    words("pandoc.html", "March " + plain)
    run("pandoc", "-o", "old.docx", "old.md", cwd=source)
    run("pandoc", "-o", "slides.pptx", "old.md", cwd=source)
    with open(os.path.join(source, "table.csv"), "w", encoding="utf-8") as f:
        f.write("Name,Quantity\nApples,3\nPears,4\n")
    profile = "-env:UserInstallation=file://" + os.path.join(source, "profile")
    for target, name in (("doc", "old.docx"), ("ppt", "slides.pptx"), ("xls", "table.csv")):
        run("soffice", profile, "--headless", "--convert-to", target, "--outdir", folder, name, cwd=source)
    words("old.doc", plain)
    words("slides.ppt", plain)
    words("table.xls", "Name Quantity Apples 3 Pears 4")


with tempfile.TemporaryDirectory() as source:
    archives(source)
    documents(source)
