#!/usr/bin/env bash
# Builds the driver against the client of one version (3.9, 4.1), in this directory: driver.jar, lib/, and driver.jsa.
set -euo pipefail
mvn -B -q -f "pom-$1.xml" dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime
javac -nowarn -d classes -cp 'lib/*' src/*.java
jar --create --file driver.jar -C classes .
# What a member has loaded after two seconds without a broker is kept: with that file Java starts in half the time.
# On a busy machine it has not even begun by then, and keeps nothing: it is given more.
for seconds in 2 4 8 16 32 64; do
  timeout -s TERM "$seconds" java @options -XX:ArchiveClassesAtExit=driver.jsa Driver member '{"bootstrap": "127.0.0.1:1", "topic": "t", "group": "g"}' || true
  test ! -f driver.jsa || exit 0
done
exit 1
