#!/bin/sh
# Runs before a removal or an upgrade, on Debian ("remove", "upgrade") and on RPM systems (0 or 1).
set -e

case "$1" in
remove | deconfigure | 0)
    if [ -d /run/systemd/system ]; then
        systemctl --no-reload disable --now journeyman.service
    fi
    ;;
esac
