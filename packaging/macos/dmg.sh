#!/bin/sh
# A disk image for macOS out of dist/Slipstream.app. README.md says how.
# Not run yet: no Mac was there to run it on.
set -eu
cd "$(dirname "$0")/../.."
app=dist/Slipstream.app
if [ ! -d "$app" ]; then
  echo "$app is not there. “python3.11 packaging/build.py” makes it." >&2
  exit 1
fi
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
image=slipstream-$version-macos-$(uname -m).dmg

# Signing needs a “Developer ID Application” certificate (Apple Developer Program) in the keychain.
# Hardened, the program must be allowed to load libraries that others signed: torch, also a build
# from elsewhere. Before the image is made:
#   codesign --force --deep --options runtime --timestamp \
#     --entitlements packaging/macos/entitlements.plist --sign "Developer ID Application: NAME (TEAM)" "$app"
#   codesign --verify --deep --strict "$app"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
ditto "$app" "$stage/Slipstream.app"
ln -s /Applications "$stage/Applications"
cp LICENSE "$stage/LICENSE.txt"
hdiutil create -volname "Slipstream $version" -srcfolder "$stage" -format UDZO -ov "dist/$image"

# Notarising needs the same account, whose password “notarytool store-credentials” has kept:
#   xcrun notarytool submit "dist/$image" --keychain-profile slipstream --wait
#   xcrun stapler staple "dist/$image"

cd dist
shasum -a 256 "$image"
