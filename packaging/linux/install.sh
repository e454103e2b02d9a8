#!/bin/sh
# Installs Slipstream for the user who runs this, or with --uninstall takes it away again.
# Nothing outside the user's own folders is written, and what the user made is never touched.
set -eu

main() {
  LC_ALL=C
  export LC_ALL
  here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
  data=${XDG_DATA_HOME:-${HOME:?}/.local/share}
  app=$data/slipstream-app # the program's own data lie in $data/slipstream
  bin=$HOME/.local/bin
  case ${1-} in
    '') install ;;
    --uninstall) uninstall ;;
    *) fail 'Usage: sh install.sh [--uninstall]' ;;
  esac
}

fail() {
  printf '%s\n' "$1" >&2
  exit 1
}

install() {
  fits
  [ -x "$here/slipstream/slipstream" ] || fail 'The archive is not whole; unpack it again.'
  idle
  [ "$here" != "$(CDPATH='' cd -- "$app" 2>/dev/null && pwd -P)" ] ||
    fail "This is the installed copy. To take it away: sh install.sh --uninstall"
  [ "$(id -u)" != 0 ] || echo 'You are root: Slipstream will be there for root alone.'
  mkdir -p -- "$data" "$bin"
  rm -rf -- "$app.new"
  trap 'rm -rf -- "$app.new"' EXIT
  mkdir -- "$app.new"
  cp -RPp -- "$here/." "$app.new"
  remove_shared
  rm -rf -- "$app.old"
  [ ! -e "$app" ] || mv -- "$app" "$app.old"
  mv -- "$app.new" "$app"
  rm -rf -- "$app.old"
  share
  link
  refresh
  echo "Slipstream is installed in $app. Start it from the menu of your desktop, or with: slipstream"
  case :$PATH: in
    *:"$bin":*) ;;
    *) echo "$bin is not in your PATH; until it is, the command is: $bin/slipstream" ;;
  esac
  echo "To take it away: sh \"$app/install.sh\" --uninstall"
}

uninstall() {
  [ -e "$app" ] || fail "Slipstream is not installed in $app."
  idle
  remove_shared
  if linked; then
    rm -f -- "$bin/slipstream"
    rmdir -- "$bin" 2>/dev/null || :
  fi
  rm -rf -- "$app"
  refresh
  echo 'Slipstream is gone. What is yours is where it was, in those of these folders that are there:'
  printf '  %s\n' "$data/slipstream" "${XDG_CONFIG_HOME:-$HOME/.config}/slipstream" \
    "${XDG_CACHE_HOME:-$HOME/.cache}/slipstream" "${XDG_STATE_HOME:-$HOME/.local/state}/slipstream"
}

# Whether this system can run it at all.
fits() {
  [ "$(uname -sm)" = 'Linux @MACHINE@' ] || fail "This is for Linux on @MACHINE@."
  found=$(getconf GNU_LIBC_VERSION 2>/dev/null) || fail 'Slipstream needs glibc, which is not here.'
  found=${found#glibc }
  oldest=$(printf '%s\n' '@GLIBC@' "$found" | sort -t . -k 1,1n -k 2,2n | head -n 1)
  [ "$oldest" = '@GLIBC@' ] || fail "Slipstream needs glibc @GLIBC@ or newer; here is $found."
}

# Whether nobody uses what is about to be replaced.
idle() {
  for exe in /proc/[0-9]*/exe; do
    [ "$(readlink -- "$exe" 2>/dev/null)" != "$app/slipstream/slipstream" ] ||
      fail 'Slipstream is running. Close it first, then try again.'
  done
}

# The files for the desktop, each where its kind belongs.
share() {
  shared | while IFS= read -r name; do
    mkdir -p -- "$data/$(dirname -- "$name")"
    cp -- "$app/share/$name" "$data/$name"
  done
  entry=applications/slipstream.desktop
  while IFS= read -r line; do
    case $line in
      Exec=*) printf 'Exec="%s" %%f\n' "$(quote "$app/slipstream/slipstream")" ;;
      TryExec=*) printf 'TryExec=%s\n' "$(double "$app/slipstream/slipstream")" ;;
      *) printf '%s\n' "$line" ;;
    esac
  done <"$app/share/$entry" >"$data/$entry"
}

remove_shared() {
  shared | while IFS= read -r name; do
    rm -f -- "$data/$name"
    (cd -- "$data" && rmdir -p -- "$(dirname -- "$name")" 2>/dev/null) || :
  done
}

shared() {
  [ ! -d "$app/share" ] || (cd -- "$app/share" && find . -type f) | sed 's|^\./||'
}

# As the desktop entry specification quotes an argument, and then a value.
quote() {
  printf '%s' "$1" | sed -e 's/[\\"`$]/\\&/g' -e 's/%/%%/g' -e 's/\\/\\\\/g'
}

double() {
  printf '%s' "$1" | sed 's/\\/\\\\/g'
}

link() {
  if [ -e "$bin/slipstream" ] && ! linked; then
    echo "$bin/slipstream is another program and stays; this one is $app/slipstream/slipstream"
  else
    ln -sf -- "$app/slipstream/slipstream" "$bin/slipstream"
  fi
}

linked() {
  [ "$(readlink -- "$bin/slipstream")" = "$app/slipstream/slipstream" ]
}

# Have desktops look again. What is made of the files of others is left where there are others.
refresh() {
  [ ! -d "$data/icons/hicolor" ] || touch -- "$data/icons/hicolor"
  if [ -d "$data/mime/packages" ]; then
    run update-mime-database "$data/mime"
  elif [ -d "$data/mime" ]; then
    (cd -- "$data/mime" && rm -f XMLnamespaces aliases generic-icons globs globs2 icons magic \
      mime.cache subclasses treemagic types version application/x-gguf.xml)
    rmdir -- "$data/mime/application" "$data/mime" 2>/dev/null || :
  fi
  if ls -- "$data"/applications/*.desktop >/dev/null 2>&1; then
    run update-desktop-database "$data/applications"
  elif [ -d "$data/applications" ]; then
    rm -f -- "$data/applications/mimeinfo.cache"
    rmdir -- "$data/applications" 2>/dev/null || :
  fi
}

run() {
  ! command -v "$1" >/dev/null || "$@" >/dev/null 2>&1 || :
}

main "$@"
exit
