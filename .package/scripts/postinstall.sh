#!/bin/sh
# Runs after an installation or an upgrade, on Debian ("configure") and on RPM systems (1 or 2).
set -e

case "$1" in
abort-*) exit 0 ;;
esac

if command -v systemd-sysusers >/dev/null 2>&1; then
    systemd-sysusers journeyman.conf
elif ! getent passwd journeyman >/dev/null; then
    useradd --system --user-group --home-dir /var/lib/journeyman --no-create-home --shell /usr/sbin/nologin journeyman
fi

# The folder may hold the data of an earlier installation: only its owner and mode are set.
install -d -m 0700 -o journeyman -g journeyman /var/lib/journeyman
chown root:journeyman /etc/journeyman /etc/journeyman/journeyman.yaml
chmod 0750 /etc/journeyman
chmod 0640 /etc/journeyman/journeyman.yaml

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
    # A new installation is not started, because its administrator configures it first. An upgrade
    # restarts a running service.
    systemctl try-restart journeyman.service
fi
