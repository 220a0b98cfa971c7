#!/usr/bin/env bash
# Builds the driver against the client of one version (3.9, 4.1), in this directory: driver.jar, lib/, and driver.jsa.
set -euo pipefail
mvn -B -q -f "pom-$1.xml" dependency:copy-dependencies -DoutputDirectory=lib -DincludeScope=runtime
javac -nowarn -d classes -cp 'lib/*' src/*.java
jar --create --file driver.jar -C classes .
# What a member has loaded after two seconds without a broker is kept: with that file Java starts in half the time.
timeout -s TERM 2 java @options -XX:ArchiveClassesAtExit=driver.jsa Driver member '{"bootstrap": "127.0.0.1:1", "topic": "t", "group": "g"}' || true
test -f driver.jsa
