#!/usr/bin/env python3
# Makes the pictures of this folder: 48 x 32 pixels, the left half red, the right half blue.
# packages: python3-pil
import os
from PIL import Image

os.chdir(os.path.dirname(os.path.abspath(__file__)))
picture = Image.new("RGB", (48, 32), (255, 0, 0))
picture.paste((0, 0, 255), (24, 0, 48, 32))
picture.convert("CMYK").save("cmyk.jpg", quality=95)
picture.save("progressive.jpg", quality=95, progressive=True)
picture.save("lossy.webp", quality=95)
picture.save("lossless.webp", lossless=True)
other = Image.new("RGB", (48, 32), (0, 255, 0))
picture.save("animated.webp", save_all=True, append_images=[other], lossless=True)
picture.save("animated.gif", save_all=True, append_images=[other])
seen_through = picture.convert("RGBA")
seen_through.putalpha(200)
seen_through.save("alpha.webp", quality=95)
seen_through.save("animated-alpha.webp", save_all=True, append_images=[other.convert("RGBA")], quality=95)
picture.save("plain.bmp")
picture.save("lzw.tif", compression="tiff_lzw")
picture.convert("P").save("palette.png")
turned = Image.Exif()
turned[0x0112] = 6
picture.save("turned.jpg", quality=95, exif=turned)
picture.save("turned.webp", lossless=True, exif=turned)
picture.save("turned.png", exif=turned)
picture.save("turned.tif", tiffinfo={0x0112: 6})
