"""A few flights as the data set has them, so that no test downloads it."""

HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,"
    "origin,dest,air_time,distance,hour,minute,time_hour"
)


CARRIERS = ["9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"]


def write_flights(count: int) -> list[str]:
    """The header, and this many flights. Every tenth was cancelled and has no delays.

    All carriers are there, as the demo keys records by them and expects some in every partition.
    """
    lines = [HEADER]
    for number in range(count):
        departure, arrival = ("NA", "NA") if number % 10 == 9 else (str(number % 60 - 5), str(number % 90 - 20))
        carrier = CARRIERS[number % len(CARRIERS)]
        lines.append(
            f"2013,1,1,517,515,{departure},830,819,{arrival},{carrier},{number},N{number},EWR,IAH,227,1400,5,15,"
            "2013-01-01 05:00:00"
        )
    return lines
