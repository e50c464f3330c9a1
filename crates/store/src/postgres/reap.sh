# Stops the tests' server when nobody has used it for a minute. $1 is its folder, $2 pg_ctl.
cd "$1" || exit 1
idle=0
while [ "$idle" -lt 6 ]; do
    sleep 10
    if flock -n -x users true; then idle=$((idle + 1)); else idle=0; fi
    if [ "$idle" -eq 6 ]; then
        # Nobody can begin to use it from here on; whoever just did is seen.
        exec 9<starting
        flock 9
        flock -n -x users true || { exec 9<&-; idle=0; }
    fi
done
rm -f port
if [ "$(id -u)" -eq 0 ]; then set -- "$1" runuser -u postgres -- "$2"; fi
folder=$1
shift
"$@" -D "$folder/data" -m immediate -w stop
rm -rf "$folder/data"
